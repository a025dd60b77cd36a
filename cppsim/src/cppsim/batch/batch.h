// The interpreter of programs for the `LANES` instances of a tile: instances at one position of the
// program are a group, and all take a clock cycle at once. Both backends compile this file, followed by
// their own entry. Operands and results are in columns, each with a number of every instance. work.h
// has the operations on the tile.

enum Code : uint64_t { SET, TAKE, GET, STEP, UNTIL, REPEAT, AGAIN };

struct Instruction {
  uint64_t code;
  uint64_t port;  // its first word; UNTIL: the last one, too, 32 bits up; AGAIN: where to go back to
  uint64_t value; // SET: the word; STEP, UNTIL: the most cycles; REPEAT: how often
  uint64_t look;  // GET, UNTIL: the port is to settle; SET, TAKE: edges may follow
};

constexpr uint32_t DEPTH = 8;

// Instances at one position: the next instruction, the turns left of each loop, and the next columns of
// operands and results. At the turn `due` they continue.
struct Group {
  W who;
  uint64_t due;
  uint32_t next, depth;
  uint64_t loops[DEPTH];
  uint64_t input, output;

  bool beside(const Group &other) const {
    if (next != other.next) return false;
    for (uint32_t k = 0; k < depth; k++)
      if (loops[k] != other.loops[k]) return false;
    return true;
  }
};

// Executes the program; on a GPU, one thread of a block does.
struct Run {
  Work &work;
  Tile &t;
  const Instruction *const program;
  const uint64_t count;
  bool stale = true, frozen = false;
  Group *const groups; // the first `ready` of `all` continue at this turn
  uint32_t ready = 1, all = 1;

  Run(Work &work, Group *groups, const Instruction *program, uint64_t count)
      : work(work), t(work.t), program(program), count(count), groups(groups) {
    work.wait_count = 0;
    for (uint32_t k = 0; k < work.share.lanes; k++) add(t.active, k);
    groups[0] = {t.active, 0, 0, 0, {}, 0, 0};
  }

  void ask(Task task) {
    work.task = task;
    DELEGATE(work);
  }

  void ask(Task task, const W &whose) {
    work.whose = whose;
    ask(task);
  }

  // Move the next column of a port's word, which is an operand or a result.
  void move(Task task, const Instruction &x, const W &whose, uint64_t column) {
    work.port = uint32_t(x.port);
    work.column = column;
    ask(task, whose);
  }

  void set(uint32_t port, uint64_t value, const W &whose) {
    for (uint32_t k = PORTS[port]; k < PORTS[port + 1]; k++, value >>= 1) {
      W &w = word_of(t, BITS[k]);
      w = value & 1 ? w | whose : w & ~whose;
    }
  }

  // --- waits -----------------------------------------------------------------------------------

  void wait(const Instruction *x, const W &whose) {
    for (uint32_t k = 0; k < work.wait_count; k++)
      if (work.waits[k].what == x) {
        work.waits[k].who |= whose;
        return;
      }
    const uint32_t first = uint32_t(x->port), last = uint32_t(x->port >> 32);
    Wait &own = work.waits[work.wait_count++] = {whose, x, 0, 0, 0, first >= PORT_WORDS};
    if (own.counted) return;
    own.first = PORTS[first];
    own.end = PORTS[last + 1];
    if (own.first < own.end) own.bit = BITS[own.first];
  }

  // Return the lanes whose wait for a counter has ended; while one waits, cycles run one by one.
  W counted() {
    W found = none();
    for (uint32_t k = 0; k < work.wait_count; k++) {
      const Wait &wait = work.waits[k];
      if (!wait.counted) continue;
      work.due = t.turn + 1;
      each(wait.who, [&](uint32_t lane) {
        if (counter(t, uint32_t(wait.what->port), lane)) add(found, lane);
      });
    }
    return found;
  }

  // Let groups continue that are due, and lanes in `high`, whose port was not 0.
  void wake(const W &high) {
    W woken = none();
    for (uint32_t k = 0; k < all; k++) {
      Group &own = groups[k];
      const W met = own.who & high, others = own.who & ~high;
      const bool late = own.due == t.turn;
      if (!late && !any(met)) continue;
      if (!late && any(others)) {
        groups[all] = own;
        groups[all++].who = others;
        own.who = met;
      }
      const Instruction &x = program[own.next - 1];
      if (x.code == UNTIL) {
        answer(own, met, t.turn + x.value - own.due);
        woken |= own.who;
      }
      own.due = t.turn;
      exchange(own, groups[ready++]);
    }
    for (uint32_t k = any(woken) ? work.wait_count : 0; k--;) {
      Wait &own = work.waits[k];
      own.who &= ~woken;
      if (!any(own.who)) own = work.waits[--work.wait_count];
    }
  }

  // The result of a wait: the cycles that have passed in the lanes in `met`, and 0 in the others.
  void answer(Group &group, const W &met, uint64_t passed) {
    uint64_t *const to = work.share.output + group.output++ * work.share.instances;
    each(group.who, [&](uint32_t lane) { to[lane] = has(met, lane) ? passed : 0; });
  }

  // --- the program -----------------------------------------------------------------------------

  static void exchange(Group &a, Group &b) {
    if (&a == &b) return;
    const Group before = a;
    a = b;
    b = before;
  }

  // Take a ready group out of those that are ready.
  void rest(Group &group) { exchange(group, groups[--ready]); }

  void drop(Group &group) {
    Group &last = groups[--ready];
    if (&group != &last) group = last;
    if (ready != --all) last = groups[all];
  }

  // Return the ready group at the first position of the program, with all others there.
  Group &first_group() {
    uint32_t first = 0;
    for (uint32_t k = 1; k < ready; k++) {
      if (groups[k].next < groups[first].next) first = k;
      else if (groups[k].beside(groups[first])) {
        groups[first].who |= groups[k].who;
        drop(groups[k--]);
      }
    }
    return groups[first];
  }

  // End the program of a group; its state is saved while others go on.
  void end(Group &group) {
    const W whose = group.who;
    each(whose, [&](uint32_t lane) {
      keep_number(t, CYCLES, lane, number_of(t, CYCLES, lane) + t.turn);
    });
    drop(group);
    t.active &= ~whose;
    if (!frozen && !any(t.active)) return;
    ask(FREEZE, whose);
    frozen = true;
  }

  // Execute the instructions of the ready groups up to their next clock cycle, or to the end.
  void follow() {
    while (ready && !STOPPED) {
      Group &group = first_group();
      if (group.next >= count) end(group);
      else if (obey(program[group.next++], group)) rest(group);
    }
  }

  // Execute `x`; return whether it takes clock cycles.
  bool obey(const Instruction &x, Group &group) {
    switch (x.code) {
    case SET:
    case TAKE:
      if (x.code == SET) set(uint32_t(x.port), x.value, group.who);
      else move(TAKE_PORT, x, group.who, group.input++);
      if (x.look) ask(CHANGED);
      stale = true;
      return false;
    case GET:
      if (x.look && stale) ask(SETTLE), stale = false;
      move(GIVE_PORT, x, group.who, group.output++);
      return false;
    case STEP:
    case UNTIL:
      group.due = t.turn + x.value;
      if (x.code == UNTIL) wait(&x, group.who);
      return x.value != 0;
    case REPEAT:
      group.loops[group.depth++] = x.value;
      return false;
    case AGAIN:
      if (--group.loops[group.depth - 1]) group.next = uint32_t(x.port);
      else group.depth--;
    }
    return false;
  }

  // Return the first turn at which an instance continues.
  uint64_t next_due() const {
    uint64_t due = ~uint64_t(0);
    for (uint32_t k = 0; k < all; k++) due = groups[k].due < due ? groups[k].due : due;
    return due;
  }

  void run() {
    if (!any(t.b[1])) ask(BEGIN); // a tile of nothing but zeros has never run
    for (follow(); all && !STOPPED; follow()) {
      work.due = next_due();
      W high = counted();
      ask(PASS);
      stale = true;
      wake(high | work.whose);
    }
    // After an interrupt, each instance is where it was stopped, between two cycles.
    for (ready = all; all;) end(groups[0]);
    if (frozen) ask(END);
    else if (t.q != t.b + STATE)
      for (uint32_t k = 0; k < STATES; k++) t.b[STATE + k] = t.q[k];
  }
};
