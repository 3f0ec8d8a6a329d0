#include "training/callbacks/writers/mlperf.h"

#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "runtime/clock.h"
#include "runtime/error.h"
#include "training/callbacks/factory.h"
#include "training/callbacks/writers/file_names.h"
#include "training/state.h"

namespace tutti {
namespace {

// A single value; json_line writes only objects.
std::string as_json(JsonValue value) {
  const std::string object = json_line({{"", std::move(value)}}), before = "{\"\": ";
  return object.substr(before.size(), object.size() - before.size() - 1);
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "CPU";
}

std::string operating_system() {
  utsname system{};
  return uname(&system) == 0 ? std::string(system.sysname) + " " + system.release : "";
}

}  // namespace

void MLPerfCallback::init(State&, Logger&) { start_ms_ = clock_->unix_ms(); }

void MLPerfCallback::after_load(State& state, Logger&) {
  if (state.topology.rank != 0) return;
  open_file(file_name(state, options_.result_path(system_name(state))));
  describe_system(state);
  if (running_) return;
  write_at(start_ms_, {.key = "init_start", .type = "INTERVAL_START"});
  const std::vector<std::pair<const char*, std::string>> facts = {
      {"submission_benchmark", options_.benchmark},
      {"submission_division", options_.division},
      {"submission_org", options_.submitter},
      {"submission_platform", system_name(state)},
      {"submission_status", options_.status}};
  for (const auto& [key, value] : facts) write({key, as_json(value)});
}

// The answer is recorded: in a replay, the file of the run itself is there.
bool MLPerfCallback::exists(const std::string& path) {
  return recorder_.input(RecordedInput::kMlperfResult, disk_.exists(path) ? 1.0 : 0.0) != 0.0;
}

// Removes lines written after the checkpoint of a resumed run.
void MLPerfCallback::open_file(const std::string& path) {
  const bool existed = exists(path);
  running_ = running_ && existed;
  if (!running_ && existed) {
    if (!options_.exist_ok)
      throw UserError("mlperf_callback: " + path + " already exists; set exist_ok = true to overwrite");
    disk_.remove_all(path);
  }
  disk_.make_folders(std::filesystem::path(path).parent_path());
  if (!running_) succeeded_ = false;  // was another run's
  const int64_t kept = running_ ? lines_ : 0;
  file_.emplace(
      disk_, path, [number = int64_t{0}](const std::string&) mutable { return ++number; }, warn_unwritten);
  lines_ = std::ssize(file_->resume(kept));
}

void MLPerfCallback::fit_start(State& state, Logger&) {
  if (std::exchange(running_, true)) return;
  const std::vector<std::pair<const char*, int64_t>> facts = {
      {"seed", static_cast<int64_t>(state.seed)},
      {"global_batch_size", state.global_batch},
      {"gradient_accumulation_steps", state.grad_accum},
      {"train_samples", state.train_samples},
      {"eval_samples", state.eval_samples}};
  for (const auto& [key, value] : facts) write({key, as_json(value)});
  write({.key = "init_stop", .type = "INTERVAL_END"});
  write({.key = "run_start", .type = "INTERVAL_START"});
}

void MLPerfCallback::epoch_start(State& state, Logger&) {
  write({.key = "epoch_start", .metadata = {{"epoch_num", now(state)}}, .type = "INTERVAL_START"});
  write({.key = "block_start",
         .metadata = {{"first_epoch_num", now(state)}, {"epoch_count", int64_t{1}}},
         .type = "INTERVAL_START"});
}

void MLPerfCallback::epoch_end(State& state, Logger&) {
  write({.key = "epoch_stop", .metadata = {{"epoch_num", now(state)}}, .type = "INTERVAL_END"});
}

void MLPerfCallback::eval_start(State& state, Logger&) {
  if (!metric_.is_of(state)) return;
  write({.key = "eval_start", .metadata = {{"epoch_num", now(state)}}, .type = "INTERVAL_START"});
}

void MLPerfCallback::eval_end(State& state, Logger&) {
  if (state.evaluation_cut || !metric_.is_of(state)) return;
  const double value = metric_.value(state);
  write({.key = "eval_stop", .metadata = {{"epoch_num", now(state)}}, .type = "INTERVAL_END"});
  write({"eval_accuracy", as_json(value), {{"epoch_num", now(state)}}});
  write({.key = "block_stop", .metadata = {{"first_epoch_num", now(state)}}, .type = "INTERVAL_END"});
  if (!metric_.better(value, options_.target, state)) return;
  write({.key = "run_stop", .metadata = {{"status", std::string("success")}}, .type = "INTERVAL_END"});
  succeeded_ = true;
  if (options_.exit_at_target) state.stop_training(metric_.text(value) + ", the target");
}

void MLPerfCallback::close(State&, Logger&) {
  if (file_) file_->finish();
  file_.reset();
}

std::string MLPerfCallback::state() const {
  return json_line({{"succeeded", int64_t{succeeded_}}, {"lines", lines_}});
}

void MLPerfCallback::restore(const std::string& json) {
  succeeded_ = json_number(json, "succeeded") != 0;
  lines_ = static_cast<int64_t>(json_number(json, "lines"));
  running_ = true;
}

void MLPerfCallback::write_at(int64_t unix_ms, const Entry& entry) {
  if (!file_ || succeeded_) return;
  std::string line = json_line({{"namespace", std::string()},
                                {"time_ms", unix_ms},
                                {"event_type", std::string(entry.type)},
                                {"key", std::string(entry.key)}});
  line.pop_back();
  file_->append(":::MLLOG " + line + ", \"value\": " + entry.value +
                ", \"metadata\": " + json_line(entry.metadata) + "}");
  file_->flush();
  ++lines_;
}

int64_t MLPerfCallback::now(const State& state) const {
  return options_.benchmark == "bert" ? state.timestamp.sample : state.timestamp.epoch;
}

std::string MLPerfCallback::system_name(const State& state) const {
  if (!options_.system_name.empty()) return options_.system_name;
  std::string device = state.device.name.empty() ? "CPU" : state.device.name;
  std::replace(device.begin(), device.end(), ' ', '_');
  return std::to_string(state.topology.world) + "x" + device + "_tutti";
}

// Unknown fields are empty, for the submitter to fill in.
void MLPerfCallback::describe_system(const State& state) {
  JsonFields fields = {
      {"submitter", options_.submitter},
      {"division", options_.division},
      {"status", options_.status},
      {"system_name", system_name(state)},
      {"host_processors_per_node",
       options_.host_processors_per_node > 0 ? std::to_string(options_.host_processors_per_node) : ""},
      {"host_processor_model_name", processor()},
      {"accelerator_model_name", state.device.name},
      {"framework", std::string("tutti")},
      {"operating_system", operating_system()}};
  for (const char* unknown : {"number_of_nodes",
                              "host_processor_core_count",
                              "host_processor_vcpu_count",
                              "host_processor_frequency",
                              "host_processor_caches",
                              "host_processor_interconnect",
                              "host_memory_capacity",
                              "host_storage_type",
                              "host_storage_capacity",
                              "host_networking",
                              "host_networking_topology",
                              "host_memory_configuration",
                              "accelerators_per_node",
                              "accelerator_host_interconnect",
                              "accelerator_frequency",
                              "accelerator_on-chip_memories",
                              "accelerator_memory_configuration",
                              "accelerator_memory_capacity",
                              "accelerator_interconnect",
                              "accelerator_interconnect_topology",
                              "cooling",
                              "hw_notes",
                              "sw_notes"})
    fields.emplace_back(unknown, std::string());
  write_beside(disk_, file_name(state, options_.root_folder + "/systems/" + system_name(state) + ".json"),
               json_line(fields) + "\n", /*overwrite=*/true);
}

CallbackPtr MLPerfOptions::make(const Setting&, const CallbackEnvironment& environment) const {
  return std::make_shared<MLPerfCallback>(environment.disk, environment.recorder,
                                          std::make_shared<SystemClock>(), *this);
}

}  // namespace tutti
