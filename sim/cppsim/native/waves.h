// Waveforms, for what moves models on: to be sampled at the end of each time step.

#pragma once

#include <stdint.h>

struct Waves;

// Settles the model and takes down what has changed. 0, or not if the simulation is to stop, because
// Python knows of an error or, as 2, because time went backwards.
extern "C" __attribute__((visibility("default"))) int waves_sample(Waves *waves,
                                                                   uint64_t femtoseconds);
