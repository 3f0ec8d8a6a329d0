#include "training/callbacks/writers/profiler.h"

#include <ATen/record_function.h>
#include <kineto/libkineto.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include "runtime/regular_file.h"
#include "training/callbacks/factory.h"
#include "training/callbacks/writers/file_names.h"
#include "training/state.h"

// Of torch/csrc/profiler/kineto_shim.h, which includes headers that no package has.
namespace torch::autograd::profiler {
TORCH_API void addMetadataJson(const std::string& key, const std::string& value);
}

namespace tutti {
namespace {

using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

std::atomic<const Profiler*> whose_turn{nullptr};

ProfilerConfig config_of(const ProfilerOptions& options) {
  return ProfilerConfig(ProfilerState::KINETO, options.record_shapes, options.profile_memory,
                        /*with_stack=*/false, options.with_flops);
}

std::set<ActivityType> activities(bool on_device) {
  if (on_device) return {ActivityType::CPU, ActivityType::CUDA};
  return {ActivityType::CPU};
}

// Kineto reports as errors that another thread profiles than the one that loaded libtorch, and that a machine
// has no device.
void quiet_kineto(bool on_device) {
  libkineto::api().registerClient(libkineto::api().client());
  if (!on_device) setenv("KINETO_LOG_LEVEL", "5", /*replace=*/0);  // nothing
}

// From Kineto's clock to the journal's: what to add to nanoseconds since 1970.
int64_t to_steady_clock() {
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(steady).count() - std::chrono::nanoseconds(since_1970).count();
}

// Kineto writes files only.
std::string text_of(torch::autograd::profiler::ProfilerResult& result) {
  const auto path =
      std::filesystem::temp_directory_path() / ("tutti-trace-" + std::to_string(getpid()) + ".json");
  result.save(path);
  std::string text = text_of_file(path);
  std::filesystem::remove(path);
  return text;
}

}  // namespace

ProfilerAction action_at(const ProfilerOptions& schedule, int64_t batch) {
  const int64_t cycle = schedule.wait + schedule.warmup + schedule.active,
                since = batch - schedule.skip_first;
  if (since < 0 || (schedule.repeat != 0 && since >= cycle * schedule.repeat)) return ProfilerAction::kSkip;
  const int64_t place = since % cycle - schedule.wait;
  if (place < 0) return ProfilerAction::kSkip;
  if (place < schedule.warmup) return ProfilerAction::kWarmUp;
  return place + 1 < schedule.warmup + schedule.active ? ProfilerAction::kRecord
                                                       : ProfilerAction::kRecordAndSave;
}

Profiler::Profiler(Disk& disk, ProfilerOptions options) : disk_(disk), options_(std::move(options)) {}

Profiler::~Profiler() {
  step_.reset();
  if (recording_) torch::autograd::profiler::disableProfiler();
  const Profiler* self = this;
  whose_turn.compare_exchange_strong(self, nullptr);
}

void Profiler::fit_start(State& state, Logger&) {
  const Profiler* nobody = nullptr;
  has_turn_ = whose_turn.compare_exchange_strong(nobody, this) || nobody == this;
  on_device_ = state.device.where.is_cuda();
  resumed_in_epoch_ = state.timestamp.batch_in_epoch;
}

void Profiler::batch_start(State& state, Logger&) {
  if (!has_turn_) return;
  const ProfilerAction action = action_at(options_, state.timestamp.batch_in_epoch - resumed_in_epoch_);
  if (action == ProfilerAction::kSkip) return;
  if (!std::exchange(prepared_, true)) {
    quiet_kineto(on_device_);
    torch::autograd::profiler::prepareProfiler(config_of(options_), activities(on_device_));
  }
  if (action == ProfilerAction::kWarmUp) return;
  record();
  step_ = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  step_->before("ProfilerStep#" + std::to_string(state.timestamp.batch));
}

void Profiler::record() {
  if (std::exchange(recording_, true)) return;
  using enum at::RecordScope;
  torch::autograd::profiler::enableProfiler(config_of(options_), activities(on_device_),
                                            {FUNCTION, BACKWARD_FUNCTION, USER_SCOPE});
}

void Profiler::batch_end(State& state, Logger&) {
  step_.reset();
  if (recording_ && action_at(options_, state.before_batch.batch_in_epoch - resumed_in_epoch_) ==
                        ProfilerAction::kRecordAndSave)
    save(state);
}

void Profiler::epoch_end(State& state, Logger&) {
  if (recording_) save(state);
  resumed_in_epoch_ = 0;
}

void Profiler::close(State& state, Logger&) {
  step_.reset();
  if (recording_) save(state);
}

void Profiler::save(const State& state) {
  recording_ = prepared_ = false;
  torch::autograd::profiler::addMetadataJson("tutti_rank", std::to_string(state.topology.rank));
  torch::autograd::profiler::addMetadataJson("tutti_clock", std::to_string(to_steady_clock()));
  const auto result = torch::autograd::profiler::disableProfiler();
  warn_if_unwritten([&] {
    write_beside(disk_, file_name(state, options_.folder + "/" + options_.filename), text_of(*result),
                 options_.overwrite);
  });
}

CallbackPtr ProfilerOptions::make(const CallbackEnvironment& environment) const {
  return std::make_shared<Profiler>(environment.disk, *this);
}

}  // namespace tutti
