package metrics
import ("testing";"math/rand/v2";"os";"time";"path/filepath")
func TestTmp(t *testing.T){
 r:=rand.New(rand.NewPCG(3,4)); dir:=t.TempDir(); var worst time.Duration; t0:=time.Now(); n:=0
 ok:=0
 for time.Since(t0)<4*time.Second { n++
  b:=[]byte(historyText); for range 1+r.IntN(3) { i:=r.IntN(len(b)); switch r.IntN(3){case 0: b[i]="0123456789[]{},n"[r.IntN(16)]; case 1: b=append(b[:i],b[i+1:]...); case 2: b[i]=byte(r.IntN(256))}}
  p:=filepath.Join(dir,"m"); os.WriteFile(p,b,0o600); t1:=time.Now()
  m := Open(Options{Models: []string{"fast"}, File: p, Now: at(epoch + 7).now})
  query(t, m, "window=5184000&columns=1440")
  m.Refuse(Unauthorized)
  if m.since!=epoch+7 {ok++}
  if _, err := decode(m.encode()); err != nil { t.Error(err) }
  if d:=time.Since(t1); d>worst {worst=d; t.Log(d,string(b))}
 }
 t.Log(n,ok,worst)
}
