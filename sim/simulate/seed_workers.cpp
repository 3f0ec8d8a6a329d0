#include "sim/simulate/seed_workers.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/error.h"
#include "sim/simulate/seed_wire.h"

namespace tutti {
namespace {

using Command = std::function<std::vector<std::string>(const SeedShare&)>;
using Take = std::function<void(const SeedResult&)>;

std::vector<int> own_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  return cores;
}

// A process that is to inherit one core only: it is this thread's for that moment.
class OnCore {
 public:
  explicit OnCore(int core) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OnCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OnCore(const OnCore&) = delete;

 private:
  cpu_set_t before_;
};

class Worker {
 public:
  Worker(const SeedShare& share, int core, Nanoseconds timeout, const Command& command, const Take& take)
      : share_(share), core_(core), timeout_(timeout), command_(command), take_(take) {
    start();
  }
  ~Worker() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    if (pipe_ >= 0) ::close(pipe_);
  }
  Worker(const Worker&) = delete;

  int pipe() const { return pipe_; }

  // Reads what there is; false once there is nothing more to do.
  bool read_on() {
    char bytes[1 << 14];
    const ssize_t got = ::read(pipe_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return ended();
    silent_ = {};
    text_.append(bytes, got);
    for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      line(text_.substr(0, end));
      text_.erase(0, end + 1);
    }
    return true;
  }

  // It was silent for so much longer. What is killed ends, and read_on hears of it.
  void wait(Nanoseconds time) {
    silent_ += time;
    if (silent_ <= timeout_ || killed_) return;
    killed_ = true;
    ::kill(pid_, SIGKILL);
  }

 private:
  void start();

  void line(const std::string& text) {
    if (const auto seed = parse_begin_line(text)) {
      begun_ = seed;
      barren_ = 0;
    } else if (const auto result = parse_result_line(text)) {
      begun_.reset();
      share_.first = result->seed + share_.stride;
      if (share_.first <= share_.last)
        take_(*result);
      else
        last_ = result;  // how the process ends is a part of it
    } else if (const auto why = parse_refusal_line(text)) {
      throw UserError(*why);
    }
  }

  bool ended() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    ::close(std::exchange(pipe_, -1));
    const std::string how = text_of(status);
    if (last_) {
      if (killed_ || status != 0) last_->findings.push_back(how + ", behind its last seed");
      take_(*last_);
      return false;
    }
    if (!begun_ && ++barren_ > 1)
      throw OperatingError("processes of the simulation end before they simulate anything: " + how);
    SeedResult lost;
    lost.seed = begun_.value_or(share_.first);
    lost.findings = {how + (begun_ ? "" : ", before the seed began")};
    begun_.reset();
    share_.first = lost.seed + share_.stride;
    take_(lost);
    if (share_.first > share_.last) return false;
    start();
    return true;
  }

  std::string text_of(int status) const {
    if (killed_)
      return "nothing came of it for " + std::to_string(static_cast<int64_t>(seconds(timeout_))) +
             " s, so its process was killed";
    if (WIFSIGNALED(status)) return std::string("the process was ended by ") + strsignal(WTERMSIG(status));
    return "the process ended with exit code " + std::to_string(WEXITSTATUS(status));
  }

  SeedShare share_;
  int core_;
  Nanoseconds timeout_;
  const Command& command_;
  const Take& take_;
  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string text_;
  Nanoseconds silent_{};
  bool killed_ = false;
  std::optional<uint64_t> begun_;
  int barren_ = 0;                  // processes in a row that ended before a seed began
  std::optional<SeedResult> last_;  // of the share
};

void Worker::start() {
  text_.clear();
  silent_ = {};
  killed_ = false;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw OperatingError(std::string("no pipe: ") + std::strerror(errno));
  const std::vector<std::string> words = command_(share_);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const OnCore on(core_);
  const int error = ::posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  pipe_ = ends[0];
  if (error != 0) throw OperatingError(words[0] + ": cannot start: " + std::strerror(error));
}

}  // namespace

// Time is told by the looks at them, since a farm that was stopped for an hour (Ctrl-Z) has not listened.
void simulate_seeds(uint64_t first, uint64_t last, int jobs, const Command& command, const Take& take,
                    Nanoseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const std::chrono::milliseconds look_every(timeout >= std::chrono::seconds(10) ? 1000 : 50);
  const std::vector<int> cores = own_cores();
  const auto stride = std::min<uint64_t>(jobs, last - first + 1);
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint64_t i = 0; i < stride; ++i)
    workers.push_back(std::make_unique<Worker>(SeedShare{first + i, last, stride}, cores[i % cores.size()],
                                               timeout, command, take));
  Clock::time_point looked = Clock::now();
  while (!workers.empty()) {
    std::vector<pollfd> pipes;
    for (const auto& worker : workers) pipes.push_back({worker->pipe(), POLLIN, 0});
    if (::poll(pipes.data(), pipes.size(), static_cast<int>(look_every.count())) < 0) continue;
    const Clock::time_point now = Clock::now();
    const auto went_by = std::min<Nanoseconds>(now - std::exchange(looked, now), 2 * look_every);
    for (std::size_t i = pipes.size(); i-- > 0;) {
      if (pipes[i].revents == 0)
        workers[i]->wait(went_by);
      else if (!workers[i]->read_on())
        workers.erase(workers.begin() + static_cast<int64_t>(i));
    }
  }
}

}  // namespace tutti
