// The entry for processor cores, behind batch.h: instances `first` to `last`, each in one piece.

extern "C" __attribute__((visibility("default"))) void
batch_run(uint32_t *state, uint8_t *rows, const batch::Instruction *program, uint64_t count,
          const uint64_t *input, uint64_t inputs, uint64_t *output, uint64_t outputs, uint64_t first,
          uint64_t last, uint32_t fresh) {
  for (uint64_t i = first; i < last; i++) {
    const batch::Share share = {state + i * STATE_WORDS, rows + i * ROW_BYTES, input + i * inputs,
                                output + i * outputs,    1,                    0,
                                fresh != 0};
    batch::run(share, program, count);
  }
}
