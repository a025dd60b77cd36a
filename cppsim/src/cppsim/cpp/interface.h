// What Python calls of a written simulation, in whose source this is included behind `Top`.

#define EXPORT extern "C" __attribute__((visibility("default")))

// All rows of memories become 0.
EXPORT void simulation_reset(Top *top) {
  Messages *messages = top->messages;
  __builtin_memset(static_cast<void *>(top), 0, sizeof(Top));
  __builtin_memcpy(top->s, starts, sizeof starts);
  top->messages = messages;
  messages->count = 0;
}

// Null if memory is exhausted.
EXPORT Top *simulation_create() {
  Top *top = static_cast<Top *>(__builtin_malloc(sizeof(Top)));
  Messages *messages = static_cast<Messages *>(__builtin_calloc(1, sizeof(Messages)));
  if (!top || !messages) {
    __builtin_free(top);
    __builtin_free(messages);
    return nullptr;
  }
  top->messages = messages;
  simulation_reset(top);
  return top;
}

EXPORT void simulation_destroy(Top *top) {
  __builtin_free(top->messages->words);
  __builtin_free(top->messages);
  __builtin_free(top);
}

EXPORT uint64_t *simulation_words(Top *top) { return top->s; }

EXPORT void *simulation_memory(Top *top, size_t number) { return top->memory(number); }

// 1 if an edge of a clock that the design makes is to follow, and 2 if there are messages.
EXPORT int simulation_step(Top *top) { return top->step(); }

// The two halves of a step: inputs may change between them.
EXPORT void simulation_edge(Top *top) {
  top->halved = true;
  simulation_step(top);
  top->halved = false;
}

EXPORT int simulation_levels(Top *top) { return top->levels(); }

EXPORT void simulation_settle(Top *top) { top->settle(); }

// Messages since the last call; valid until the next step.
EXPORT size_t simulation_messages(Top *top, const uint64_t **first) {
  const size_t count = top->messages->count;
  *first = top->messages->words;
  top->messages->count = 0;
  return count;
}
