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
                         uint32_t(left < LANES ? left : LANES),
                         fresh != 0};
    Lane lanes[LANES];
    Work work;
    static_assert(sizeof lanes + sizeof work < 1 << 20, "they lie on the stack");
    W *const state = own + STATE, *const ended = own + CORE_WORDS - ENDED_WORDS;
    work.t = {own, state, state + STATES, ended, share.rows, 0, none()};
    Run(work, lanes, share, program, count).run();
  }
}
