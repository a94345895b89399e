package main

import (
	"slices"

	"github.com/anishathalye/porcupine"
)

const (
	read = iota
	write
	cas
)

const (
	get = iota
	put
	add
)

const (
	dequeue = iota
	enqueue
)

var models = map[string]porcupine.Model{
	"cas-register": {
		Partition: byKey,
		Init:      func() interface{} { return -1 },
		Step:      stepRegister,
		Equal:     func(a, b interface{}) bool { return a.(int) == b.(int) },
	},
	"fifo-queue": {
		Partition: byKey,
		Init:      func() interface{} { return []int(nil) },
		Step:      stepQueue,
		Equal:     func(a, b interface{}) bool { return slices.Equal(a.([]int), b.([]int)) },
	},
	"kv": {
		Partition: byKey,
		Init:      func() interface{} { return "" },
		Step:      stepKeyValue,
		Equal:     func(a, b interface{}) bool { return a.(string) == b.(string) },
	},
}

func stepRegister(state, in, out interface{}) (bool, interface{}) {
	value, asked, answer := state.(int), in.(input), out.(output)
	switch asked.kind {
	case read:
		return !answer.known || answer.result == value, value
	case write:
		return true, asked.argument
	}
	matches := value == asked.expected
	if answer.known && matches != (answer.result == 1) {
		return false, value
	}
	if matches {
		return true, asked.argument
	}
	return true, value
}

func stepQueue(state, in, out interface{}) (bool, interface{}) {
	elements, asked, answer := state.([]int), in.(input), out.(output)
	if asked.kind == enqueue {
		return true, append(slices.Clone(elements), asked.argument)
	}
	if len(elements) == 0 {
		return !answer.known || answer.result == -1, elements
	}
	return !answer.known || answer.result == elements[0], elements[1:]
}

func stepKeyValue(state, in, out interface{}) (bool, interface{}) {
	value, asked, answer := state.(string), in.(input), out.(output)
	switch asked.kind {
	case get:
		return !answer.known || answer.text == value, value
	case put:
		return true, asked.text
	}
	return true, value + asked.text
}

func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	place := map[int]int{}
	var parts [][]porcupine.Operation
	for _, operation := range history {
		key := operation.Input.(input).key
		at, met := place[key]
		if !met {
			at = len(parts)
			place[key] = at
			parts = append(parts, nil)
		}
		parts[at] = append(parts[at], operation)
	}
	return parts
}
