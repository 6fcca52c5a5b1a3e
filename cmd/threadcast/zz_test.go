package main_test
import ("testing";"time";"fmt";"net/http"
"github.com/threadcast/threadcast/web/webtest")
func TestZZ(t *testing.T){
 n:=start(t,"--log-level","warn")
 s:=&stage{T:t,ctx:t.Context(),node:n}
 v:=s.watch("live",raw)
 s.must(n.tryRun("live",load("r1",3000,500,150,false)))
 var last time.Time; var gaps []time.Duration; began:=time.Now(); var at time.Duration
 fired:=make(chan struct{})
 s.must(v.until(func(v *webtest.Viewer) bool {
  now:=time.Now(); if !last.IsZero(){ g:=now.Sub(last); gaps=append(gaps,g); if g>at {at=g} }; last=now
  if count(v)>500 { select{case <-fired: default: close(fired); t.Logf("max gap before burst %s",at); at=0; go forEach(300,300,func(i int){ b:=time.Now(); st,_,err:=n.request(http.MethodPost,threadPath(fmt.Sprint("b",i))+"/runs",load("r1",5,0,150,false)); if st!=202||err!=nil {t.Error(st,err)}; if i%60==0 {t.Logf("accept %d took %s",i,time.Since(b))} }) } }
  return webtest.Ended("r1")(v)}))
 t.Logf("took %s; p99 gap %s; max gap after burst %s", time.Since(began), percentile(gaps,.99), at)
}
