// Steps a design without compiling it: the functions that a compiled design exports, over programs.

#include "interpreter.h"

#include "../cpp/messages.h"

namespace {

struct Interpreter {
  int64_t left; // instructions until compiling pays
  const Interpretation *design;
  char *state;
  uint64_t *words;
  Messages *messages;
};

template <typename Element>
void write(char *state, const Action &at, const uint64_t *values) {
  const uint64_t row = values[at.row], mask = values[at.enable], value = values[at.value];
  if (!mask || row >= at.rows) return;
  Element &element = reinterpret_cast<Element *>(state + at.target)[row * at.step];
  element = Element((element & ~mask) | (value & mask));
}

void report(Messages *messages, const Action *at, const uint64_t *values) {
  uint64_t *given = static_cast<uint64_t *>(__builtin_malloc((at->value + 1) * sizeof *given));
  if (!given) __builtin_abort();
  for (uint32_t k = 0; k < at->value; k++) given[k] = values[at[1 + k].value];
  messages->add(at->target, given, at->value);
  __builtin_free(given);
}

// Returns the value of the part's program, 0 if it has none.
uint64_t run(Interpreter *interpreter, const Part &part) {
  uint64_t *const words = interpreter->words, *const values = part.program.values;
  const uint64_t result = part.program.count ? probe_value(&part.program, words) : 0;
  interpreter->left -= int64_t(part.program.count + part.size);
  for (uint64_t number = 0; number < part.size; number++) {
    const Action &at = part.actions[number];
    switch (at.kind) {
    case Kind::STORE:
      if (values[at.enable]) words[at.target] = values[at.value];
      break;
    case Kind::COPY: words[at.target] = words[at.value]; break;
    case Kind::WRITE_8: write<uint8_t>(interpreter->state, at, values); break;
    case Kind::WRITE_16: write<uint16_t>(interpreter->state, at, values); break;
    case Kind::WRITE_32: write<uint32_t>(interpreter->state, at, values); break;
    case Kind::WRITE_64: write<uint64_t>(interpreter->state, at, values); break;
    case Kind::MESSAGE:
      if (values[at.enable]) report(interpreter->messages, &at, values);
      number += at.value;
      break;
    case Kind::VALUE: break;
    }
  }
  return result;
}

} // namespace

#pragma GCC visibility push(default)

extern "C" {

void interpreter_reset(Interpreter *interpreter) {
  const Interpretation *design = interpreter->design;
  __builtin_memset(interpreter->state, 0, design->bytes);
  __builtin_memcpy(interpreter->words, design->starts, design->size * sizeof *design->starts);
  void *const after = interpreter->words + design->size;
  __builtin_memcpy(after, &interpreter->messages, sizeof interpreter->messages);
  interpreter->messages->count = 0;
}

// Null if memory is exhausted.
Interpreter *interpreter_create(const Interpretation *design, int64_t left) {
  Interpreter *made = static_cast<Interpreter *>(__builtin_malloc(sizeof *made));
  char *state = static_cast<char *>(__builtin_malloc(design->bytes));
  Messages *messages = static_cast<Messages *>(__builtin_calloc(1, sizeof *messages));
  if (!made || !state || !messages) {
    __builtin_free(made);
    __builtin_free(state);
    __builtin_free(messages);
    return nullptr;
  }
  *made = {left, design, state, reinterpret_cast<uint64_t *>(state), messages};
  interpreter_reset(made);
  return made;
}

void interpreter_destroy(Interpreter *interpreter) {
  __builtin_free(interpreter->messages->words);
  __builtin_free(interpreter->messages);
  __builtin_free(interpreter->state);
  __builtin_free(interpreter);
}

void *interpreter_state(Interpreter *interpreter) { return interpreter->state; }

void interpreter_edge(Interpreter *interpreter) {
  const Interpretation *design = interpreter->design;
  if (!design->active.program.count || run(interpreter, design->active))
    run(interpreter, design->edge);
  run(interpreter, design->previous);
}

int interpreter_levels(Interpreter *interpreter) {
  const bool pending = run(interpreter, interpreter->design->levels) != 0;
  return int(pending) | (interpreter->messages->count != 0) << 1;
}

int interpreter_step(Interpreter *interpreter) {
  interpreter_edge(interpreter);
  return interpreter_levels(interpreter);
}

void interpreter_settle(Interpreter *interpreter) { run(interpreter, interpreter->design->settle); }

size_t interpreter_messages(Interpreter *interpreter, const uint64_t **first) {
  const size_t count = interpreter->messages->count;
  *first = interpreter->messages->words;
  interpreter->messages->count = 0;
  return count;
}

} // extern "C"

#pragma GCC visibility pop
