// A model as the native code sees it: its words, the functions that interface.h exports, and its
// waveforms.

#pragma once

#include <stddef.h>
#include <stdint.h>

struct Model {
  void *top;
  uint64_t *words;
  int (*step)(void *top);    // 1: to be stepped once more; plus 2: there are messages
  void (*settle)(void *top); // what follows from state and inputs shows in `words`
};

// Samples a model at the end of each time step; see waves.cc.
struct Waves;

// Settles the model and takes down what has changed. Not 0 if that failed: Python says how.
extern "C" __attribute__((visibility("default"))) int waves_sample(Waves *waves,
                                                                   uint64_t femtoseconds);
