// A design as programs of probe.h, which is stepped without being compiled.
//
// A part computes values from the words before a change; its actions, in order, then change words
// and rows. The layout of the state is that of the compiled design, which can take over.

#pragma once

#include "probe.h"

extern "C" {

// The order is that of `Kind` in interpreted.py. `enable` and `value` are numbers of values.
enum class Kind : uint32_t {
  STORE,   // the word `target` becomes `value` if `enable` is not 0
  COPY,    // the word `target` becomes the word `value`
  WRITE_8, // of `rows` rows each `step` elements apart, the first at the byte `target` of the state,
           // row number `row` gets the bits `enable` of `value`
  WRITE_16,
  WRITE_32,
  WRITE_64,
  MESSAGE, // number `target` if `enable` is not 0; the next `value` actions have its values
  VALUE,
};

struct Action {
  Kind kind;
  uint32_t enable, value, row, rows, step;
  uint64_t target;
};

struct Part {
  Program program;
  const Action *actions;
  uint64_t size;
};

// Python owns all of this.
struct Interpretation {
  Part active; // its value is 0 if a step has no edge; without a program there always is one
  Part edge;   // what happens at edges
  Part previous;   // the previous levels of clocks
  Part levels; // its value is not 0 if an edge of a clock that the design makes is to follow
  Part settle;
  const uint64_t *starts;
  uint64_t size;  // words, which the pointer to messages follows
  uint64_t bytes; // of the state
};

} // extern "C"
