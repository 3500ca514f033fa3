module github.com/prism-shadow/mmsp-go/bench

go 1.26.0

require (
	github.com/prism-shadow/mmsp-go v0.0.0
	github.com/valyala/fastjson v1.6.10
)

replace github.com/prism-shadow/mmsp-go => ../
