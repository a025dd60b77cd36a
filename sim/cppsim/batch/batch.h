// The interpreter of programs for the `LANES` instances of a tile: each instance has its own program
// counter, and all take a clock cycle at once. Both backends compile this file, followed by their own
// entry. Operands and results are words, in columns. work.h has the operations on the tile.

enum Code : uint64_t { SET, TAKE, GET, STEP, UNTIL, REPEAT, AGAIN };

struct Instruction {
  uint64_t code;
  uint64_t port;  // its first word; UNTIL: the last one, too, 32 bits up; AGAIN: where to go back to
  uint64_t value; // SET: the word; STEP, UNTIL: the most cycles; REPEAT: how often
  uint64_t look;  // GET, UNTIL: the port is to settle; SET, TAKE: edges may follow
};

constexpr uint32_t DEPTH = 8;

// The memories, operands and results of a tile's lanes. The strides between lanes are `in_lane` and
// `out_lane`, those between columns `in_next` and `out_next`.
struct Share {
  uint8_t *rows;
  const uint64_t *input;
  uint64_t *output;
  uint64_t in_lane, in_next, out_lane, out_next;
  uint32_t lanes;
  bool fresh;
};

// The program counter and loops of an instance, and the turn at which it continues.
struct Lane {
  uint32_t next, depth;
  uint64_t loops[DEPTH];
  uint64_t due;
  const uint64_t *input;
  uint64_t *output;
};

// Executes the program; on a GPU, one thread of a block does.
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
    work.wait_count = 0;
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

  // Return the lanes whose wait for a counter has ended; while one waits, cycles run one by one.
  W counted() {
    W found = none();
    for (uint32_t k = 0; k < work.wait_count; k++) {
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
    for (uint32_t k = 0; k < work.wait_count; k++)
      if (work.waits[k].what == x) {
        work.waits[k].who |= whose;
        return;
      }
    const uint32_t first = uint32_t(x->port), last = uint32_t(x->port >> 32);
    Wait &own = work.waits[work.wait_count++] = {whose, x, 0, 0, 0, false, first >= PORT_WORDS};
    if (own.counted) return;
    own.first = PORTS[first];
    own.end = PORTS[last + 1];
    if (own.first < own.end) own.bit = BITS[own.first];
    for (uint32_t port = first; port <= last; port++) own.always |= CONSTANTS[port] != 0;
  }

  // End the waits of the lanes in `ready`; in the lanes in `high`, the port was not 0.
  void go_on(const W &ready, const W &high) {
    if (!any(waiting & ready)) return;
    for (uint32_t k = work.wait_count; k--;) {
      Wait &own = work.waits[k];
      each(own.who & ready, [&](uint32_t lane) {
        const uint64_t began = lanes[lane].due - own.what->value;
        give(lane, has(high, lane) ? t.turn - began : 0);
      });
      own.who &= ~ready;
      if (!any(own.who)) own = work.waits[--work.wait_count];
    }
    waiting &= ~ready;
  }

  // End the program of the lanes in `whose`; their state is saved while other lanes go on.
  void end(const W &whose) {
    each(whose, [&](uint32_t lane) {
      keep_number(t, CYCLES, lane, number_of(t, CYCLES, lane) + t.turn);
    });
    t.active &= ~whose;
    if (!frozen && !any(t.active)) return;
    ask(FREEZE, 0, whose);
    frozen = true;
  }

  // Execute the instructions of the lanes in `ready` up to their next clock cycle, or to the end.
  void follow(W ready) {
    while (any(ready) && !STOPPED) {
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

  // Execute `x`; return whether it takes clock cycles.
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

  // Return the first turn at which an instance continues.
  uint64_t next_due() const {
    uint64_t due = ~uint64_t(0);
    each(t.active, [&](uint32_t lane) { due = lanes[lane].due < due ? lanes[lane].due : due; });
    return due;
  }

  void run() {
    if (share.fresh) ask(BEGIN);
    for (follow(t.active); any(t.active) && !STOPPED;) {
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
