// Runs a program on the instances of a tile, `LANES` of them: each goes its own way through the
// program, and all take a cycle at once. Both backends compile this, each with an entry of its own
// behind it. A program's words are counted in columns. The text before this declares
//   step, levels, settle    what the circuit does with words; CLOCKED where there are clocks to watch
//   store, advance          writes of memories that wait after a step, and what is the state then
//   ONES_B, ONES_Q          words that begin as ones
//   PORTS, BITS, CONSTANTS  of a port's word its bits, and those of them that never change
//   CLOCKS, SEEN, MADE      clocks that a cycle raises, and what is copied once they were looked at
//   CHECKS                  words that say who fails, and what
//   FROZEN                  words of `b` that go on after an instance has ended

enum Code : uint64_t { SET, TAKE, GET, STEP, UNTIL, REPEAT, AGAIN };

struct Instruction {
  uint64_t code;
  uint64_t port;  // its first word; UNTIL: the last one, too, 32 bits up; AGAIN: where to go back to
  uint64_t value; // SET: the word; STEP, UNTIL: the most cycles; REPEAT: how often
  uint64_t look;  // GET, UNTIL: the port is to settle; SET, TAKE: edges may follow
};

constexpr uint32_t DEPTH = 8;

// A tile's share of what all instances have: their rows, and the columns that its lanes
// take and give, which lie `in_lane` and `out_lane` apart, and the next ones `in_next`, `out_next`.
struct Share {
  uint8_t *rows;
  const uint64_t *input;
  uint64_t *output;
  uint64_t in_lane, in_next, out_lane, out_next;
  uint32_t lanes;
  bool fresh;
};

// Where an instance is in the program, and the turn before which it has nothing to do.
struct Lane {
  uint32_t next, depth;
  uint64_t loops[DEPTH];
  uint64_t due;
  const uint64_t *input;
  uint64_t *output;
};

enum Task : uint32_t { QUIT, BEGIN, PASS, CHANGED, SETTLE, GIVE_PORT, TAKE_PORT, FREEZE, END };

// What some wait for: that one of the BITS from `first` to `end` is 1, or that something is counted.
struct Wait {
  W who;
  const Instruction *what;
  uint32_t first, end, bit; // `bit` is the first of them
  bool always, counted;
};

// What is done with a tile, by all threads of a GPU's block.
struct Work {
  Tile t;
  Task task;
  W whose; // GIVE_PORT, TAKE_PORT, FREEZE: of whom; PASS: who has seen what he waited for
  uint32_t port, waiting;
  uint64_t values[LANES];
  Wait waits[LANES]; // as many as are `waiting`
  uint64_t due;      // the first turn behind which an instance goes on
};

inline uint64_t get(const Tile &t, uint32_t port, uint32_t lane) {
  if (port >= PORT_WORDS) {
    const uint32_t which = port - PORT_WORDS;
    return number_of(t, which, lane) + (which == CYCLES ? t.turn : 0);
  }
  uint64_t value = CONSTANTS[port];
  for (uint32_t k = PORTS[port]; k < PORTS[port + 1]; k++)
    value |= uint64_t(has(word_of(t, BITS[k]), lane)) << (BITS[k] & 63);
  return value;
}

// Whatever a check says the first time, of those from `first` to `last`.
inline void tell(const Tile &t, uint32_t first, uint32_t last) {
  if (!FIRST) return;
  for (uint32_t k = first; k < last; k++)
    each(t.b[CHECKS[k][0]] & t.active, [&](uint32_t lane) {
      if (number_of(t, FAILED, lane)) return;
      keep_number(t, FAILED, lane, CHECKS[k][1] + 1);
      keep_number(t, FAILED_AT, lane, number_of(t, CYCLES, lane) + t.turn);
    });
}

inline void stepped(Tile &t) {
  step(t);
  tell(t, 0, EVENT_COUNT);
  store(t);
  advance(t);
  if (!CLOCKED) return;
  EACH(k, SEEN_COUNT) t.b[SEEN[k][1]] = t.b[SEEN[k][0]];
  TOGETHER();
  levels(t);
  tell(t, EVENT_COUNT, CHECK_COUNT);
  EACH(k, MADE_COUNT) t.b[MADE[k][1]] = t.b[MADE[k][0]];
  TOGETHER();
}

inline void changed(Tile &t) {
  if (!CLOCKED) return;
  W pending;
  do {
    stepped(t);
    pending = none();
    for (uint32_t k = 0; k < PENDING_COUNT; k++) pending |= t.b[PENDING[k]];
    TOGETHER();
  } while (any(pending & t.active));
}

inline void cycle(Tile &t) {
  if (!EDGES) return stepped(t);
  EACH(k, CLOCK_COUNT) t.b[CLOCKS[k]] = all();
  TOGETHER();
  changed(t);
  EACH(k, CLOCK_COUNT) t.b[CLOCKS[k]] = none();
  TOGETHER();
  changed(t);
}

inline void begin(Tile &t) {
  EACH(k, TILE_WORDS) t.b[k] = none();
  TOGETHER();
  EACH(k, ONES_B_COUNT) t.b[ONES_B[k]] = all();
  EACH(k, ONES_Q_COUNT) t.q[ONES_Q[k]] = all();
  TOGETHER();
  changed(t);
}

// Of those who wait for a port, the ones of whose port a bit of the state, or of all else, is 1.
inline W met(const Work &x, bool state) {
  W found = none();
  for (uint32_t k = 0; k < x.waiting; k++) {
    const Wait &wait = x.waits[k];
    W high = wait.always ? all() : none();
    for (uint32_t j = wait.first; j < wait.end; j++) {
      const uint32_t bit = j == wait.first ? wait.bit : BITS[j];
      if (is_state(bit) == state) high |= word_of(x.t, bit);
    }
    found |= high & wait.who;
  }
  return found;
}

// Cycles up to the one behind which somebody has something to do.
inline void pass(Work &x) {
  W high;
  uint64_t turn = x.t.turn;
  do {
    high = met(x, true);
    if (EDGES && x.waiting) {
      settle(x.t);
      high |= met(x, false);
    }
    TOGETHER();
    cycle(x.t);
    // What followed from the state before the edge has just been worked out.
    if (!EDGES) high |= met(x, false);
    turn++;
    if (FIRST) x.t.turn = turn;
  } while (!any(high) && turn < x.due);
  if (FIRST) x.whose = high;
}

// The state of those that have ended is kept aside while others go on.
inline void freeze(const Tile &t, const W &whose) {
  EACH(k, ENDED_WORDS) {
    const W w = k < STATES ? t.q[k] : t.b[FROZEN[k - STATES]];
    t.ended[k] = (t.ended[k] & ~whose) | (w & whose);
  }
}

inline void unfreeze(const Tile &t) {
  EACH(k, ENDED_WORDS) (k < STATES ? t.b[STATE + k] : t.b[FROZEN[k - STATES]]) = t.ended[k];
}

inline void take(Work &x) {
  EACH(k, PORTS[x.port + 1] - PORTS[x.port]) {
    const uint32_t bit = BITS[PORTS[x.port] + k];
    W &w = word_of(x.t, bit);
    each(x.whose, [&](uint32_t lane) {
      if ((x.values[lane] >> (bit & 63) & 1) != has(w, lane)) flip(w, lane);
    });
  }
}

inline void perform(Work &x) {
  switch (x.task) {
  case QUIT: break;
  case BEGIN: begin(x.t); break;
  case PASS: pass(x); break;
  case CHANGED: changed(x.t); break;
  case SETTLE: settle(x.t); break;
  case GIVE_PORT:
    EACH(lane, LANES)
      if (has(x.whose, lane)) x.values[lane] = get(x.t, x.port, lane);
    break;
  case TAKE_PORT: take(x); break;
  case FREEZE: freeze(x.t, x.whose); break;
  case END: unfreeze(x.t); break;
  }
}

// Follows the program; one thread of a block does.
struct Run {
  Work &work;
  Tile &t;
  const Share &share;
  const Instruction *program;
  uint64_t count;
  bool stale = true, frozen = false;
  Lane *const lanes;
  W waiting = none();

  Run(Work &work, Lane *lanes, const Share &share, const Instruction *program, uint64_t count)
      : work(work), t(work.t), share(share), program(program), count(count), lanes(lanes) {
    work.waiting = 0;
    for (uint32_t k = 0; k < share.lanes; k++) {
      add(t.active, k);
      lanes[k] = {0, 0, {}, 0, share.input + k * share.in_lane, share.output + k * share.out_lane};
    }
  }

  void ask(Task task) {
    work.task = task;
    DELEGATE(work);
  }

  void ask(Task task, uint32_t port, const W &whose) {
    work.port = port;
    work.whose = whose;
    ask(task);
  }

  // --- ports -----------------------------------------------------------------------------------

  void set(uint32_t port, uint64_t value, const W &whose) {
    for (uint32_t k = PORTS[port]; k < PORTS[port + 1]; k++) {
      W &w = word_of(t, BITS[k]);
      w = value >> (BITS[k] & 63) & 1 ? w | whose : w & ~whose;
    }
  }

  void take(uint32_t port, const W &whose) {
    each(whose, [&](uint32_t lane) {
      work.values[lane] = *lanes[lane].input;
      lanes[lane].input += share.in_next;
    });
    ask(TAKE_PORT, port, whose);
  }

  void give(uint32_t lane, uint64_t value) {
    *lanes[lane].output = value;
    lanes[lane].output += share.out_next;
  }

  // Of those who wait for what is counted, the ones that have some; then a cycle passes at a time.
  W counted() {
    W found = none();
    for (uint32_t k = 0; k < work.waiting; k++) {
      const Wait &wait = work.waits[k];
      if (!wait.counted) continue;
      work.due = t.turn + 1;
      each(wait.who, [&](uint32_t lane) {
        if (get(t, uint32_t(wait.what->port), lane)) add(found, lane);
      });
    }
    return found;
  }

  // --- the program -----------------------------------------------------------------------------

  void wait(const Instruction *x, const W &whose) {
    waiting |= whose;
    for (uint32_t k = 0; k < work.waiting; k++)
      if (work.waits[k].what == x) {
        work.waits[k].who |= whose;
        return;
      }
    const uint32_t first = uint32_t(x->port), last = uint32_t(x->port >> 32);
    Wait &own = work.waits[work.waiting++] = {whose, x, 0, 0, 0, false, first >= PORT_WORDS};
    if (own.counted) return;
    own.first = PORTS[first];
    own.end = PORTS[last + 1];
    own.bit = BITS[own.first];
    for (uint32_t port = first; port <= last; port++) own.always |= CONSTANTS[port] != 0;
  }

  // Those in `ready` wait no longer; `high` has those that have seen what they waited for.
  void go_on(const W &ready, const W &high) {
    if (!any(waiting & ready)) return;
    for (uint32_t k = work.waiting; k--;) {
      Wait &own = work.waits[k];
      each(own.who & ready, [&](uint32_t lane) {
        const uint64_t began = lanes[lane].due - own.what->value;
        give(lane, has(high, lane) ? t.turn - began : 0);
      });
      own.who &= ~ready;
      if (!any(own.who)) own = work.waits[--work.waiting];
    }
    waiting &= ~ready;
  }

  // Instances that have ended: what is theirs stays as it is, while the others go on.
  void end(const W &whose) {
    each(whose, [&](uint32_t lane) {
      keep_number(t, CYCLES, lane, number_of(t, CYCLES, lane) + t.turn);
    });
    t.active &= ~whose;
    if (!frozen && !any(t.active)) return;
    ask(FREEZE, 0, whose);
    frozen = true;
  }

  // All instructions of those in `ready` up to their next cycle, if they have one.
  void follow(W ready) {
    while (any(ready)) {
      uint32_t at = ~uint32_t(0);
      each(ready, [&](uint32_t lane) { at = lanes[lane].next < at ? lanes[lane].next : at; });
      W whose = none();
      each(ready, [&](uint32_t lane) {
        if (lanes[lane].next == at) add(whose, lane), lanes[lane].next++;
      });
      if (at >= count) {
        end(whose);
        ready &= ~whose;
      } else if (obey(program[at], whose)) {
        ready &= ~whose;
      }
    }
  }

  // Whether cycles pass.
  bool obey(const Instruction &x, const W &whose) {
    const uint32_t port = uint32_t(x.port);
    switch (x.code) {
    case SET:
    case TAKE:
      if (x.code == SET) set(port, x.value, whose);
      else take(port, whose);
      if (x.look) ask(CHANGED);
      stale = true;
      return false;
    case GET:
      if (x.look && stale) ask(SETTLE), stale = false;
      ask(GIVE_PORT, port, whose);
      each(whose, [&](uint32_t lane) { give(lane, work.values[lane]); });
      return false;
    case STEP:
    case UNTIL:
      each(whose, [&](uint32_t lane) { lanes[lane].due = t.turn + x.value; });
      if (x.code == UNTIL) wait(&x, whose);
      return x.value != 0;
    case REPEAT:
      each(whose, [&](uint32_t lane) { lanes[lane].loops[lanes[lane].depth++] = x.value; });
      return false;
    case AGAIN:
      each(whose, [&](uint32_t lane) {
        Lane &l = lanes[lane];
        if (--l.loops[l.depth - 1]) l.next = uint32_t(x.port);
        else l.depth--;
      });
    }
    return false;
  }

  // The first turn behind which an instance goes on.
  uint64_t next_due() const {
    uint64_t due = ~uint64_t(0);
    each(t.active, [&](uint32_t lane) { due = lanes[lane].due < due ? lanes[lane].due : due; });
    return due;
  }

  void run() {
    if (share.fresh) ask(BEGIN);
    for (follow(t.active); any(t.active);) {
      work.due = next_due();
      W high = counted();
      ask(PASS);
      stale = true;
      high |= work.whose;
      W ready = high;
      each(t.active, [&](uint32_t lane) {
        if (lanes[lane].due == t.turn) add(ready, lane);
      });
      go_on(ready, high);
      follow(ready);
    }
    if (frozen) ask(END);
    else if (t.q != t.b + STATE)
      for (uint32_t k = 0; k < STATES; k++) t.b[STATE + k] = t.q[k];
  }
};
