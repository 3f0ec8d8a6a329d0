#include "tests/actors/memory_world.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <sstream>

#include "actors/local_ranks.h"
#include "io/json/json_line.h"
#include "job/make_job.h"
#include "tensors/memory/meter.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

class KeptLog final : public Log {
 public:
  explicit KeptLog(std::vector<std::string>& warnings) : warnings_(warnings) {}
  void write(LogLevel level, const std::string& line) override {
    if (level == LogLevel::kWarning) warnings_.push_back(line);
  }
  void flush() override {}

 private:
  std::vector<std::string>& warnings_;
};

std::string field(const std::string& line, const std::string& name) {
  const auto at = line.find("\"" + name + "\": ");
  if (at == std::string::npos) return "";
  const auto from = at + name.size() + 4;
  return line.substr(from, line.find_first_of(",}", from) - from);
}

void read_metrics(const std::string& path, MemoryWorld::Outcome& outcome) {
  outcome.metrics = read_text(path);
  std::istringstream lines(outcome.metrics);
  for (std::string line; std::getline(lines, line);) {
    if (field(line, "loss").empty()) {
      outcome.evaluations.push_back(line);
      continue;
    }
    outcome.losses.push_back(field(line, "loss"));
    outcome.counts.push_back(std::stoll(field(line, "grad_accum")));
    outcome.peak_mb = std::max(outcome.peak_mb, std::stod(field(line, "memory_peak_mb")));
  }
}

std::string bytes_of(Model& model) {
  std::string bytes;
  const auto add = [&bytes](const at::Tensor& tensor) {
    const at::Tensor flat = tensor.detach().cpu().contiguous();
    bytes.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  };
  for (const auto& one : parameters(model)) add(one.parameter->tensor);
  for (const auto& one : buffers(model)) add(one.buffer->tensor);
  return bytes;
}

}  // namespace

std::string MemoryWorld::Outcome::schedule() const {
  std::string text;
  for (std::size_t step = 0; step < counts.size(); ++step)
    if (step == 0 || counts[step] != counts[step - 1])
      text += (step ? ", [" : "[") + std::to_string(step) + ", " + std::to_string(counts[step]) + "]";
  return "[" + text + "]";
}

bool MemoryWorld::Outcome::has_warning(const std::string& text) const {
  return std::any_of(warnings.begin(), warnings.end(),
                     [&](const std::string& one) { return one.find(text) != std::string::npos; });
}

MemoryWorld::Outcome MemoryWorld::run(const std::string& grad_accum) const {
  const Scratch folder;
  std::string text = recipe;
  const std::string section = "[train]\n";
  text.insert(text.find(section) + section.size(), "grad_accum = " + grad_accum + "\n");
  Setting resolved = recipe_of(text);
  begin_process(RunSettings::read(resolved));
  Job job = make_job(std::move(resolved), {ranks, folder.path("run"), "", 0, "local"});
  job.listeners = listeners;
  job.tasks = tasks;
  std::vector<std::shared_ptr<Model>> models;
  job.make_model = [&](const Setting& model, const SampleSpec& spec) {
    models.push_back(make_model(model, spec));
    return models.back();
  };
  Outcome outcome;
  {
    TokenScheduler::Options scheduling;
    scheduling.seed = schedule_seed;
    if (real_time) scheduling.pace = TokenScheduler::Pace::kReal;
    if (!real_time) scheduling.time_limit = TimePoint(std::chrono::hours(1));
    LocalRanks local(job, scheduling);
    for (int r = 0; r < ranks; ++r) {
      RankEnvironment& environment = local.environments()[r];
      environment.log = std::make_shared<KeptLog>(outcome.warnings);
      if (recorder) environment.recorder = recorder(r);
      for (auto& one : environment.groups)
        if (group && one) one = group(one, r);
      add_rank(local.scheduler(), job, environment);
      outcome.allocations.push_back(-Meter::scoped_allocations(r));
      const auto chosen = failures.find(r);
      Meter::fail_at(r, chosen == failures.end() ? std::vector<int64_t>() : chosen->second);
    }
    try {
      local.scheduler().run();
    } catch (const std::exception& error) {
      outcome.error = error.what();
    }
  }
  for (int r = 0; r < ranks; ++r) {
    outcome.allocations[r] += Meter::scoped_allocations(r);
    outcome.left_in_scopes.push_back(Meter::scoped_bytes(r));
    Meter::fail_at(r, {});
  }
  if (outcome.error.empty()) read_metrics(folder.path("run/metrics.jsonl"), outcome);
  if (!models.empty() && job.topology(0).share.pieces == 1) outcome.weights = bytes_of(*models[0]);
  return outcome;
}

}  // namespace tutti
