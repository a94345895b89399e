package main

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"
)

// History is one line of input: columns of equal length, one entry per operation.
type History struct {
	Name string `json:"name"`
	// Model is "cas-register" or "kv".
	Model string `json:"model"`
	// Kind: cas-register 0 read, 1 write, 2 cas; kv 0 get, 1 put, 2 append.
	Kind   []int `json:"kind"`
	Client []int `json:"client"`
	Key    []int `json:"key"`
	// Argument is the value written, appended or set; Expected what a cas expects.
	Argument []int `json:"argument"`
	Expected []int `json:"expected"`
	// Result is the value read, or 1 and 0 for a cas that was done and refused.
	Result []int   `json:"result"`
	Call   []int64 `json:"call"`
	// Return is -1 for an operation without answer.
	Return []int64 `json:"return"`
	// Strings are what the numbers stand for in a kv history; number -1 is the empty string.
	Strings []string `json:"strings"`
}

// What an operation asked; the answer is known unless it never came.
type input struct {
	kind, key, argument, expected int
	text                          string
}

type output struct {
	known  bool
	result int
	text   string
}

// Operations turns the columns into Porcupine's form. Porcupine knows no operation that may never
// happen, so one without answer returns after everything else: taking effect there, where nothing
// is left to see it, is as good as never.
func (h *History) Operations() ([]porcupine.Operation, error) {
	n := len(h.Kind)
	for name, length := range map[string]int{
		"client": len(h.Client), "key": len(h.Key), "argument": len(h.Argument),
		"expected": len(h.Expected), "result": len(h.Result), "call": len(h.Call),
		"return": len(h.Return),
	} {
		if length != n {
			return nil, fmt.Errorf("column %s has %d entries, kind has %d", name, length, n)
		}
	}
	operations := make([]porcupine.Operation, n)
	for i := range operations {
		end := h.Return[i]
		known := end >= 0
		if !known {
			end = math.MaxInt64
		}
		operations[i] = porcupine.Operation{
			ClientId: h.Client[i],
			Input:    input{h.Kind[i], h.Key[i], h.Argument[i], h.Expected[i], h.text(h.Argument[i])},
			Call:     h.Call[i],
			Output:   output{known, h.Result[i], h.text(h.Result[i])},
			Return:   end,
		}
	}
	return operations, nil
}

func (h *History) text(number int) string {
	if number < 0 || number >= len(h.Strings) {
		return ""
	}
	return h.Strings[number]
}
