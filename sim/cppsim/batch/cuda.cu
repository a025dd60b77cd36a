// The entry for a GPU, behind batch.h: a tile a block, and the same row of all instances in one piece.
// Where `fast` says so, a block's words are in its shared memory while it runs.

#ifndef SHARED_WORDS
#define SHARED_WORDS extern __shared__ W shared_words[]
#endif
SHARED_WORDS;

extern "C" __global__ void batch_run(W *words, uint8_t *rows, const Instruction *program,
                                     uint64_t count, const uint64_t *input, uint64_t *output,
                                     uint64_t instances, uint32_t fresh, uint32_t fast) {
  __shared__ Work work;
  const uint64_t i = uint64_t(blockIdx.x) * LANES, left = instances - i;
  W *const kept = words + uint64_t(blockIdx.x) * BLOCK_WORDS, *const own = fast ? shared_words : kept;
  if (fast) EACH(k, TILE_WORDS) own[k] = kept[k];
  const Share share = {rows, input + i, output + i, 1, instances, 1, instances,
                       instances, i,   uint32_t(left < LANES ? left : LANES), fresh != 0};
  if (FIRST) {
    Run run(work, own, kept + BLOCK_WORDS - ENDED_WORDS, share, program, count);
    TOGETHER();
    run.run();
    work.task = QUIT;
    TOGETHER();
  } else {
    for (TOGETHER();;) {
      TOGETHER();
      if (work.task == QUIT) break;
      perform(work);
      TOGETHER();
    }
  }
  TOGETHER();
  if (fast) EACH(k, TILE_WORDS) kept[k] = own[k];
}
