// Waveforms, which the code that steps a model samples at the end of each time step.

#pragma once

#include <stdint.h>

struct Waves;

// Settles the model and takes down what has changed. Not 0 if that failed: Python says how.
typedef int TakeSample(Waves *waves, uint64_t femtoseconds);
