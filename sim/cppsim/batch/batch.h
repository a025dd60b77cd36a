// Runs a program on one instance of `Top`, which the text before this declares. Both backends compile
// it, each with an entry of its own behind it. A program's words are counted in columns: what
// instance `at` of `of` takes or gives in column k is word k * of + at.
//   struct State                          the state, plain, STATE_WORDS words of 32 bits
//   struct Top : State                    with its memories: bind, get, set, changed, cycle, settle

namespace batch {

enum Code : uint64_t { SET, TAKE, GET, STEP, UNTIL, REPEAT, AGAIN };

struct Instruction {
  uint64_t code;
  uint64_t port;  // its first word; UNTIL: the last one, too, 32 bits up; AGAIN: where to go back to
  uint64_t value; // SET: the word; STEP, UNTIL: the most cycles; REPEAT: how often
  uint64_t look;  // GET, UNTIL: the port is to settle; SET, TAKE: edges may follow
};

constexpr uint32_t DEPTH = 8;

// An instance's share of arrays in which `of` of them lie side by side, and whether it is fresh.
struct Share {
  uint32_t *state;
  uint8_t *rows;
  const uint64_t *input;
  uint64_t *output;
  uint64_t of, at;
  bool fresh;
};

inline void run(const Share &share, const Instruction *program, uint64_t count) {
  Top top;
  uint32_t *const words = reinterpret_cast<uint32_t *>(static_cast<State *>(&top));
  if (!share.fresh)
    for (uint32_t k = 0; k < STATE_WORDS; k++) words[k] = share.state[k * share.of + share.at];
  top.bind(share.rows, share.of, share.at);
  if (share.fresh) top.changed();

  uint64_t loops[DEPTH] = {};
  uint32_t depth = 0;
  uint64_t next = 0, left = 0, waited = 0;
  const uint64_t *input = share.input + share.at;
  uint64_t *output = share.output + share.at;
  const Instruction *until = nullptr;
  bool stale = true;

  // One cycle a turn, whatever instruction it belongs to: instances that are at different ones still
  // go through it together.
  for (;;) {
    while (!left && next < count) {
      const Instruction &x = program[next];
      if (x.code == GET && x.look && stale) break;
      next++;
      switch (x.code) {
      case SET:
      case TAKE: {
        uint64_t value = x.value;
        if (x.code == TAKE) value = *input, input += share.of;
        top.set(uint32_t(x.port), value);
        if (x.look) top.changed();
        stale = true;
        break;
      }
      case GET:
        *output = top.get(uint32_t(x.port));
        output += share.of;
        break;
      case STEP:
        left = x.value;
        break;
      case UNTIL:
        left = x.value;
        until = &x;
        waited = 0;
        break;
      case REPEAT:
        loops[depth++] = x.value;
        break;
      case AGAIN:
        if (--loops[depth - 1]) next = x.port;
        else depth--;
        break;
      }
    }
    if (!left && next >= count) break;
    if (stale && (!left || (until && until->look))) {
      top.settle();
      stale = false;
    }
    if (!left) continue;
    uint64_t high = 0;
    if (until)
      for (uint32_t k = uint32_t(until->port); k <= until->port >> 32; k++) high |= top.get(k);
    top.cycle();
    stale = true;
    left--;
    if (until) {
      waited++;
      if (high || !left) {
        *output = high ? waited : 0;
        output += share.of;
        left = 0;
        until = nullptr;
      }
    }
  }
  for (uint32_t k = 0; k < STATE_WORDS; k++) share.state[k * share.of + share.at] = words[k];
}

} // namespace batch
