// An instance as the native code sees it: its words, and the functions that interface.h exports.

#pragma once

#include <stddef.h>
#include <stdint.h>

struct Instance {
  void *top;
  uint64_t *words;
  int (*step)(void *top);    // 1: to be stepped once more; plus 2: there are messages
  void (*settle)(void *top); // what follows from state and inputs shows in `words`
  void (*edge)(void *top);   // the two halves of `step`, between which inputs may change
  int (*levels)(void *top);
};

// Waveforms, which the code that steps an instance samples at the end of each time step.
struct Waves;

// Settles the instance and takes down what has changed. Not 0 if that failed: Python says how.
typedef int TakeSample(Waves *waves, uint64_t femtoseconds);
