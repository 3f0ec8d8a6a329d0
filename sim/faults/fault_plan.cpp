#include "sim/faults/fault_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "recipe/resolve.h"
#include "recipe/toml_reader.h"

namespace tutti {
namespace {

constexpr const char* kAnyPhase = "any";

constexpr auto kPhases = [] {
  using enum FaultPhase;
  return std::array{kStart,   kLoad,   kBatch,      kMicrobatch, kBackward, kReduce,
                    kVerdict, kCommit, kEvaluation, kDurable,    kPublish,  kDisk};
}();
constexpr std::array kMemoryPhases{FaultPhase::kMicrobatch, FaultPhase::kBackward, FaultPhase::kEvaluation};

const char* name(FaultPhase phase) {
  static constexpr const char* kNames[] = {"start",      "load",    "batch",   "microbatch",
                                           "backward",   "reduce",  "verdict", "commit",
                                           "evaluation", "durable", "publish", "disk"};
  return kNames[static_cast<int>(phase)];
}

struct NamedKind {
  const char* name;
  FaultKind kind;
  const char* doc;
};
constexpr NamedKind kKinds[] = {
    {"death", FaultKind::kDeath, "A rank's process is killed; what it wrote stays."},
    {"power_loss", FaultKind::kPowerLoss,
     "All processes end; the disk keeps synced data, and a part of the rest."},
    {"sigterm", FaultKind::kSigterm, "A rank is asked to stop."},
    {"slow", FaultKind::kSlow, "A rank's steps take longer."},
    {"delay", FaultKind::kDelay, "A rank's control messages arrive later."},
    {"reorder", FaultKind::kReorder, "Control messages of several ranks overtake each other."},
    {"hang", FaultKind::kHang, "A collective does not end."},
    {"disk_full", FaultKind::kDiskFull, "Writes fail: no space is left."},
    {"write_error", FaultKind::kWriteError, "Writes fail: input/output error."},
    {"lost_write", FaultKind::kLostWrite, "Writes report success and store nothing."},
    {"out_of_memory", FaultKind::kOutOfMemory,
     "An allocation of a rank fails, in forward, backward or an evaluation."},
    {"torn_write", FaultKind::kTornWrite, "Writes report success and store only the first half."},
    {"slow_link", FaultKind::kSlowLink, "Messages from the rank to another rank arrive later."},
    {"clog", FaultKind::kClog,
     "The links of several ranks are held one after the other, and freed in another order."},
    {"cut", FaultKind::kCut, "Messages from the rank to another rank are held until the link heals."},
    {"pause", FaultKind::kPause, "The rank's process stops for some time, as by SIGSTOP."},
    {"clock_jump", FaultKind::kClockJump, "The rank's wall clock jumps forward or back."},
    {"slow_disk", FaultKind::kSlowDisk, "Calls of the rank's disk answer later."},
};

Key number_of(const char* what, const char* fallback) {
  return Key{"count", KeyType::kInteger, fallback, what}.at_least(1);
}

Key duration(const char* what, const char* fallback) {
  return Key{"seconds", KeyType::kNumber, fallback, what}.at_least(0).at_most(1e6);
}

std::vector<Key> keys_of(FaultKind kind) {
  const Key file{"file", KeyType::kText, "checkpoints/", "only files with this in their path"};
  const Key to =
      Key{"to", KeyType::kInteger, "any", "the rank that receives; any: drawn"}.or_word("any").at_least(0);
  switch (kind) {
    case FaultKind::kSlow:
      return {duration("by which each step takes longer", "1"), number_of("steps", "1")};
    case FaultKind::kDelay:
      return {duration("by which each message is late", "1"), number_of("messages", "5")};
    case FaultKind::kReorder:
      return {duration("by which a message is late at most", "1"), number_of("messages", "20")};
    case FaultKind::kHang:
      return {duration("until the collective ends; 0: never", "0")};
    case FaultKind::kOutOfMemory:
      return {number_of("allocations of the phase, one of which is drawn to fail", "20")};
    case FaultKind::kDiskFull:
    case FaultKind::kWriteError:
    case FaultKind::kLostWrite:
    case FaultKind::kTornWrite:
      return {number_of("writes", "1"), file};
    case FaultKind::kSlowLink:
      return {duration("by which each message of the link is late", "1"), number_of("messages", "5"), to};
    case FaultKind::kClog:
      return {duration("from the first hold to the last release", "3"),
              number_of("ranks with held links, at most all", "3")};
    case FaultKind::kCut:
      return {duration("until the link heals; 0: never", "3"), to};
    case FaultKind::kPause:
      return {duration("for which the process stops", "3")};
    case FaultKind::kClockJump:
      return {duration("by which the clock jumps, forward or back as drawn", "3600")};
    case FaultKind::kSlowDisk:
      return {duration("by which each call is late", "1"), number_of("calls", "3")};
    default:
      return {};
  }
}

std::vector<std::string> phases_and_any() {
  std::vector<std::string> names{kAnyPhase};
  for (const FaultPhase phase : kPhases) names.emplace_back(name(phase));
  return names;
}

Catalog plan_catalog() {
  return {.section = "",
          .noun = "",
          .doc = "The faults of a simulation.",
          .keys = {Key{"starts", KeyType::kInteger, "3", "of the job with faults"}.at_least(1).at_most(100)}};
}

Catalog fault_catalog() {
  using enum KeyType;
  Catalog catalog{
      .section = "fault",
      .noun = "fault",
      .doc = "A fault, at most once in an attempt.",
      .keys = {Key{"probability", kNumber, "1", "of the fault, in each attempt"}.more_than(0).at_most(1),
               Key{"rank", kInteger, "any", "with the fault; any: drawn"}.or_word("any").at_least(0),
               Key{"step", kInteger, "any", "from which on the fault may happen; any: drawn"}
                   .or_word("any")
                   .at_least(1),
               Key{"phase", kText, "any", "of the step; any: drawn"}.one_of(phases_and_any())}};
  for (const auto& [name, kind, doc] : kKinds) catalog.entries.push_back({name, doc, keys_of(kind)});
  catalog.repeated = true;
  return catalog;
}

std::optional<FaultPhase> phase_of(const Setting& written, const FaultRule& rule) {
  if (written.text() == kAnyPhase) return std::nullopt;
  std::string names;
  for (const FaultPhase phase : fault_phases(rule.kind)) {
    if (written.text() == name(phase)) return phase;
    names += (names.empty() ? "" : ", ") + std::string(name(phase));
  }
  written.fail(rule.name + " cannot happen in this phase: expected " + names + " or any");
}

std::optional<int> rank_of(const Setting& written, int ranks) {
  if (!written.is_integer()) return std::nullopt;
  if (written.integer() >= ranks)
    written.fail(ranks == 1 ? "there is one rank, 0"
                            : "there are " + std::to_string(ranks) + " ranks, counted from 0");
  return static_cast<int>(written.integer());
}

FaultRule rule_of(const Setting& fault, int ranks) {
  FaultRule rule;
  rule.name = fault.at("kind").text();
  for (const auto& entry : kKinds)
    if (rule.name == entry.name) rule.kind = entry.kind;
  rule.probability = fault.at("probability").number();
  rule.rank = rank_of(fault.at("rank"), ranks);
  if (fault.has("to")) rule.to = rank_of(fault.at("to"), ranks);
  if (rule.to && rule.to == rule.rank) fault.at("to").fail("expected another rank than the sender's");
  if (fault.at("step").is_integer()) rule.step = fault.at("step").integer();
  rule.phase = phase_of(fault.at("phase"), rule);
  if (fault.has("seconds")) rule.seconds = fault.at("seconds").number();
  if (rule.seconds == 0 && fault.has("seconds") && !rule.endless())
    fault.at("seconds").fail("expected more than 0 seconds");
  if (fault.has("count")) rule.count = fault.at("count").integer();
  if (fault.has("file")) rule.file = fault.at("file").text();
  return rule;
}

// Rules are numbered from 1.
void set_labels(std::vector<FaultRule>& rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    FaultRule& rule = rules[i];
    const auto same = [&](const FaultRule& other) { return other.kind == rule.kind; };
    const bool alone = std::count_if(rules.begin(), rules.end(), same) == 1;
    rule.label = alone ? rule.name : rule.name + " (rule " + std::to_string(i + 1) + ")";
  }
}

}  // namespace

Nanoseconds FaultRule::duration(double part) const {
  return Nanoseconds(static_cast<int64_t>(1e9 * part * seconds));
}

bool FaultRule::affects_writes() const {
  return kind == FaultKind::kDiskFull || kind == FaultKind::kWriteError || kind == FaultKind::kLostWrite ||
         kind == FaultKind::kTornWrite;
}

bool FaultRule::needs_several_ranks() const {
  return kind == FaultKind::kDelay || kind == FaultKind::kHang || kind == FaultKind::kSlowLink ||
         kind == FaultKind::kClog || kind == FaultKind::kCut || phase == FaultPhase::kReduce ||
         phase == FaultPhase::kVerdict;
}

bool FaultRule::endless() const {
  return seconds == 0 && (kind == FaultKind::kHang || kind == FaultKind::kCut);
}

bool FaultRule::delays_messages() const {
  return kind == FaultKind::kDelay || kind == FaultKind::kReorder || kind == FaultKind::kSlowLink ||
         kind == FaultKind::kClog || kind == FaultKind::kCut || kind == FaultKind::kPause;
}

// Many late control messages make a rank no more silent than one does, and many slow steps are no hang. But a
// step may wait for several collectives of a slow link, or for several calls of a disk.
double FaultRule::lateness_s() const {
  if (endless()) return std::numeric_limits<double>::infinity();
  if (kind == FaultKind::kClockJump) return 0;
  const bool adds_up = kind == FaultKind::kSlowLink || kind == FaultKind::kSlowDisk;
  return seconds * static_cast<double>(adds_up ? count : 1);
}

std::span<const FaultPhase> fault_phases(FaultKind kind) {
  if (kind == FaultKind::kOutOfMemory) return kMemoryPhases;
  return kPhases;
}

std::optional<FaultPhase> phase_after(TraceKind kind) {
  static const std::map<TraceKind, FaultPhase> kPhases = {
      {TraceKind::kPrepares, FaultPhase::kStart},    {TraceKind::kBatchReady, FaultPhase::kLoad},
      {TraceKind::kBatch, FaultPhase::kBatch},       {TraceKind::kMicrobatch, FaultPhase::kMicrobatch},
      {TraceKind::kBackward, FaultPhase::kBackward}, {TraceKind::kReduceBucket, FaultPhase::kReduce},
      {TraceKind::kVerdict, FaultPhase::kVerdict},   {TraceKind::kCommitted, FaultPhase::kCommit},
      {TraceKind::kSkipped, FaultPhase::kCommit},    {TraceKind::kEvaluation, FaultPhase::kEvaluation},
      {TraceKind::kDurable, FaultPhase::kDurable},   {TraceKind::kPublished, FaultPhase::kPublish}};
  const auto phase = kPhases.find(kind);
  return phase == kPhases.end() ? std::nullopt : std::optional(phase->second);
}

std::span<const Catalog> fault_catalogs() {
  static const std::array<Catalog, 2> catalogs = {plan_catalog(), fault_catalog()};
  return catalogs;
}

FaultPlan make_fault_plan(const Setting& written, int ranks) {
  const Setting resolved = resolve(written, fault_catalogs());
  FaultPlan plan;
  plan.path = written.position.file;
  plan.starts = static_cast<int>(resolved.at("starts").integer());
  for (const auto& fault : resolved.at("fault").array()) plan.rules.push_back(rule_of(fault, ranks));
  set_labels(plan.rules);
  return plan;
}

FaultPlan read_fault_plan(const std::string& path, int ranks) {
  return make_fault_plan(read_recipe(path), ranks);
}

namespace {

constexpr uint64_t kDiskCalls = 60;  // about as many as two checkpoints make

}  // namespace

ScheduledFaults::ScheduledFaults(const FaultPlan& plan, const RandomKey& draw, int ranks, int64_t steps) {
  for (std::size_t i = 0; i < plan.rules.size(); ++i) {
    const FaultRule& rule = plan.rules[i];
    const auto phases = fault_phases(rule.kind);
    const RandomKey key = draw.fold_in(i);
    if (key.uniform(0) >= rule.probability) continue;
    int rank = rule.rank.value_or(static_cast<int>(key.below(ranks, 1)));
    if (rule.to == rank) rank = (rank + 1) % ranks;
    const int64_t step = rule.step.value_or(1 + static_cast<int64_t>(key.below(steps, 2)));
    const FaultPhase phase = rule.phase ? *rule.phase : phases[key.below(phases.size(), 3)];
    const uint64_t choices = phase == FaultPhase::kDisk ? kDiskCalls : 1;
    const auto skipped = static_cast<int64_t>(key.below(choices, 4));
    scheduled_.push_back({&rule, rank, phase == FaultPhase::kStart ? 0 : step, phase, skipped});
  }
}

std::vector<const FaultRule*> ScheduledFaults::due(int rank, int64_t step, FaultPhase phase) {
  std::vector<const FaultRule*> rules;
  std::erase_if(scheduled_, [&](Scheduled& scheduled) {
    if (scheduled.rank != rank || step < scheduled.step || scheduled.phase != phase ||
        scheduled.skipped-- > 0)
      return false;
    rules.push_back(scheduled.rule);
    return true;
  });
  return rules;
}

}  // namespace tutti
