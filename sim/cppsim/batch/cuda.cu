// The entry for a GPU, behind batch.h: a tile a block, and the same row of its instances in one piece.
// While it runs, a block's words are in its shared memory, if they fit there.

extern "C" __global__ void __launch_bounds__(1024, 1)
batch_run(W *words, uint8_t *rows, const Instruction *program, uint64_t count, const uint64_t *input,
          uint64_t *output, uint64_t instances, uint32_t fresh) {
  __shared__ Work work;
  static_assert(sizeof(Work) <= OWN_BYTES, "more than was left for it");
  W *const kept = words + uint64_t(blockIdx.x) * BLOCK_WORDS + LANE_WORDS;
#ifdef IN_SHARED
  W *const own = shared_words;
#else
  W *const own = kept;
#endif
  if (threadIdx.x < WARP) {
    if (threadIdx.x) return;
    const uint64_t i = uint64_t(blockIdx.x) * LANES, left = instances - i;
    const uint32_t lanes_here = uint32_t(left < LANES ? left : LANES);
    const Share share = {rows + i * ROW_BYTES, input + i,  output + i, 1, instances, 1,
                         instances,            lanes_here, fresh != 0};
    static_assert(sizeof(Lane) * LANES <= LANE_WORDS * sizeof(W), "they lie before a tile's words");
    Lane *const lanes = reinterpret_cast<Lane *>(kept - LANE_WORDS);
    W *const ended = kept + BLOCK_WORDS - LANE_WORDS - ENDED_WORDS;
    work.t = {own, own + STATE, own + STATE, ended, share.rows, 0, none()};
    Run run(work, lanes, share, program, count);
    all_together();
    run.run();
    work.task = QUIT;
    all_together();
    return;
  }
  load_tables();
  if (own != kept) EACH(k, TILE_WORDS) own[k] = kept[k];
  for (all_together();;) {
    all_together();
    if (work.task == QUIT) break;
    perform(work);
    all_together();
  }
  if (own != kept) EACH(k, TILE_WORDS) kept[k] = own[k];
}
