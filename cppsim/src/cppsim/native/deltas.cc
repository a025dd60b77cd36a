// Executes delta cycles: see deltas.h.

#include "deltas.h"

namespace {

const uint64_t *row(const Deltas *deltas, uint64_t age) {
  return deltas->rows + (deltas->newest + age) % deltas->capacity * deltas->size;
}

void push(Deltas *deltas, bool fresh) {
  if (!deltas->count) {
    deltas->still = 0;
    deltas->count = deltas->origin = fresh;
  }
  deltas->newest = (deltas->newest ? deltas->newest : deltas->capacity) - 1;
  if (deltas->count < deltas->capacity) deltas->count++;
  else deltas->origin = 0;
  const size_t bytes = deltas->size * sizeof(uint64_t);
  __builtin_memcpy(const_cast<uint64_t *>(row(deltas, 0)), deltas->instance->words, bytes);
}

// Let new pending edges wait until their clocks have changed, `passed` delta cycles less. Those of
// one delta cycle happen at the same time, as they do without watches.
void delay(Deltas *deltas, uint64_t passed) {
  uint64_t *words = deltas->instance->words, longest = 0;
  bool found = false;
  for (uint64_t i = 0; i < deltas->derived_size; i++) {
    const DerivedEdge &edge = deltas->derived[i];
    if (!words[edge.word]) continue;
    found = true;
    if (edge.depth > longest) longest = edge.depth;
  }
  if (!found) return;
  uint8_t *late = deltas->late + (longest > passed ? longest - passed : 0) * deltas->derived_size;
  for (uint64_t i = 0; i < deltas->derived_size; i++) {
    uint64_t &pending = words[deltas->derived[i].word];
    if (pending) late[i] = 1;
    pending = 0;
  }
}

bool any_late(const Deltas *deltas) {
  const uint64_t size = deltas->late_rows * deltas->derived_size;
  for (uint64_t i = 0; i < size; i++)
    if (deltas->late[i]) return true;
  return false;
}

// Return whether edges of derived clocks happen now; the others are a delta cycle nearer.
bool ripen(Deltas *deltas) {
  const uint64_t size = deltas->derived_size;
  if (!size) return false;
  bool ripe = false;
  for (uint64_t i = 0; i < size; i++) {
    if (!deltas->late[i]) continue;
    deltas->instance->words[deltas->derived[i].word] = 1;
    ripe = true;
  }
  const uint64_t left = (deltas->late_rows - 1) * size;
  __builtin_memmove(deltas->late, deltas->late + size, left);
  __builtin_memset(deltas->late + left, 0, size);
  return ripe;
}

bool clocks_changed(const Deltas *deltas) {
  const uint64_t *words = deltas->instance->words;
  for (uint64_t i = 0; i < deltas->clocks_size; i++)
    if (words[deltas->clocks[i].word] != words[deltas->clocks[i].before]) return true;
  return false;
}

// Return the number of delta cycles after which the last watch shows a change.
uint64_t depth_of(const Deltas *deltas) {
  uint64_t deepest = 0;
  for (uint64_t i = 0; i < deltas->watches_size; i++) {
    const Watch &watch = deltas->watches[i];
    if ((watch.rising | watch.falling) && watch.depth > deepest) deepest = watch.depth;
  }
  return deepest;
}

} // namespace

#define EXPORT __attribute__((visibility("default")))

EXPORT int deltas_begin(Deltas *deltas, int fresh) {
  const Instance *instance = deltas->instance;
  if (!deltas->settled) instance->settle(instance->top);
  deltas->settled = 1;
  push(deltas, fresh);
  delay(deltas, 0); // edges that were found without watches
  deltas->answer = 0;
  const bool active = ripen(deltas) | clocks_changed(deltas);
  if (active) {
    instance->edge(instance->top);
    deltas->settled = 0;
  }
  if (fresh) {
    // Logic has its first edges before the first values are written.
    deltas->answer = uint64_t(instance->levels(instance->top));
    delay(deltas, 1);
  }
  return active;
}

EXPORT int deltas_end(Deltas *deltas, int active) {
  const Instance *instance = deltas->instance;
  deltas->answer |= uint64_t(instance->levels(instance->top));
  delay(deltas, 0);
  deltas->still = active ? 0 : deltas->still + 1;
  if (active) deltas->settled = 0;
  deltas_look(deltas);
  return active || deltas->still < depth_of(deltas) || any_late(deltas);
}

EXPORT int deltas_run(Deltas *deltas) {
  bool more = true;
  while (more) {
    more = deltas_end(deltas, deltas_begin(deltas, 0));
    if (deltas->fired || deltas->answer & 2) break;
  }
  return more;
}

EXPORT void deltas_look(Deltas *deltas) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < deltas->watches_size; i++) {
    Watch &watch = deltas->watches[i];
    const uint64_t *words = deltas->instance->words;
    watch.before = watch.now;
    if (watch.depth && deltas->count) {
      const uint64_t depth = watch.depth < deltas->count ? watch.depth : deltas->count;
      if (deltas->origin && depth == deltas->count) continue;
      words = row(deltas, depth - 1);
    }
    const uint64_t now = watch.now = words[watch.word];
    found |= ((now & watch.rising) | (~now & watch.falling)) & (now ^ watch.before);
  }
  deltas->fired = found != 0;
}
