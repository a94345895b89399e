// Asks Porcupine about histories given as columns, and says what it cost.
//
// Reads one JSON object per line (see History) from standard input and answers each with one JSON
// object per line. A history that takes too much ends the process with its answer: whoever has more
// asks again. The CPU time is that of the check alone, the garbage collector's included; the
// fastest of -repeats, since a first check also grows the heap. The peak is that of the whole
// process so far, so it means something for the first history only.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

// Answer is one line of output.
type Answer struct {
	Name string `json:"name"`
	// Verdict is "valid", "invalid" or "unknown".
	Verdict string  `json:"verdict"`
	CpuS    float64 `json:"cpu_s"`
	WallS   float64 `json:"wall_s"`
	PeakMib int64   `json:"peak_mib"`
	// Reason for "unknown".
	Reason string `json:"reason"`
}

// No check that took longer is repeated.
const repeatedSecondsMax = 2

func main() {
	limit := flag.Duration("limit", time.Minute, "CPU time for one check of one history")
	memory := flag.Int64("memory-mib", 8192, "memory of the process")
	repeats := flag.Int("repeats", 1, "checks of each history; the fastest counts")
	flag.Parse()
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 1 {
			answer, failure := judge(line, *limit, *memory, *repeats)
			if failure != nil {
				fmt.Fprintln(os.Stderr, failure)
				os.Exit(64)
			}
			if err := out.Encode(answer); err != nil {
				os.Exit(74)
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(74)
		}
	}
}

func judge(line []byte, limit time.Duration, memory int64, repeats int) (*Answer, error) {
	history := &History{}
	if err := json.Unmarshal(line, history); err != nil {
		return nil, err
	}
	model, known := models[history.Model]
	if !known {
		return nil, fmt.Errorf("history %s: no model %q", history.Name, history.Model)
	}
	operations, err := history.Operations()
	if err != nil {
		return nil, fmt.Errorf("history %s: %w", history.Name, err)
	}
	answer := &Answer{Name: history.Name, Verdict: "unknown", CpuS: -1}
	name := history.Name
	*history = History{}
	runtime.GC()
	watch := &resourceWatch{name: name, cpuMax: limit.Seconds(), mibMax: memory}
	for try := 0; try < repeats; try++ {
		cpu, wall := cpuSeconds(), time.Now()
		stop := watch.start()
		result := porcupine.CheckOperationsTimeout(model, operations, 0)
		stop()
		used := cpuSeconds() - cpu
		if answer.CpuS < 0 || used < answer.CpuS {
			answer.CpuS, answer.WallS = used, time.Since(wall).Seconds()
		}
		switch result {
		case porcupine.Ok:
			answer.Verdict = "valid"
		case porcupine.Illegal:
			answer.Verdict = "invalid"
		}
		if used > repeatedSecondsMax {
			break
		}
	}
	answer.PeakMib = peakMib()
	return answer, nil
}

// Ends the process with an answer when a check takes more than it may: CPU time, not time, so that
// a busy machine decides nothing.
type resourceWatch struct {
	name   string
	cpuMax float64
	mibMax int64
}

func (w *resourceWatch) start() func() {
	done := make(chan struct{})
	cpu, wall := cpuSeconds(), time.Now()
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			answer := Answer{
				Name: w.name, Verdict: "unknown", PeakMib: peakMib(),
				CpuS: cpuSeconds() - cpu, WallS: time.Since(wall).Seconds(),
			}
			if answer.PeakMib > w.mibMax {
				answer.Reason = "memory"
			} else if answer.CpuS > w.cpuMax {
				answer.Reason = "time"
			} else {
				continue
			}
			_ = json.NewEncoder(os.Stdout).Encode(answer)
			os.Exit(0)
		}
	}()
	return func() { close(done) }
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func peakMib() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Maxrss / 1024
}
