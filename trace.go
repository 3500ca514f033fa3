package mmsp

// Tracer placeholder
type Tracer struct{ dir string }

func NewTracer(dir string) *Tracer                                                    { return &Tracer{dir} }
func checkTraceID(id string) error                                                    { return nil }
func (t *Tracer) Save(traceID, model string, history []Message, config *Config) error { return nil }
