// The entry for processor cores, behind batch.h: tiles `first` to `last`, of instances whose rows and
// columns lie in one piece each.

extern "C" __attribute__((visibility("default"))) void
batch_run(W *words, uint8_t *rows, const Instruction *program, uint64_t count,
          const uint64_t *input, uint64_t inputs, uint64_t *output, uint64_t outputs,
          uint64_t instances, uint64_t first, uint64_t last, uint32_t fresh) {
  for (uint64_t tile = first; tile < last; tile++) {
    const uint64_t i = tile * LANES, left = instances - i;
    W *const own = words + tile * CORE_WORDS;
    const Share share = {rows + i * ROW_BYTES,
                         input + i * inputs,
                         output + i * outputs,
                         inputs,
                         1,
                         outputs,
                         1,
                         1,
                         0,
                         uint32_t(left < LANES ? left : LANES),
                         fresh != 0};
    static_assert(sizeof(Run) + sizeof(Work) < 1 << 20, "they lie on the stack");
    Work work;
    Run(work, own, own + CORE_WORDS - ENDED_WORDS, share, program, count).run();
  }
}
