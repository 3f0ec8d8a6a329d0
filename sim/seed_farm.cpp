#include "sim/seed_farm.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "runtime/error.h"
#include "sim/seed_line.h"

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
  Worker(const SeedShare& share, int core, const Command& command, const Take& take)
      : share_(share), core_(core), command_(command), take_(take) {
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
    text_.append(bytes, got);
    for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      line(text_.substr(0, end));
      text_.erase(0, end + 1);
    }
    return true;
  }

 private:
  void start();

  void line(const std::string& text) {
    if (const auto seed = parse_begin_line(text)) {
      begun_ = seed;
    } else if (const auto result = parse_seed_line(text)) {
      take_(*result);
      begun_.reset();
      share_.first = result->seed + share_.stride;
    }
  }

  bool ended() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    ::close(std::exchange(pipe_, -1));
    if (share_.first > share_.last) return false;
    if (!begun_) throw OperatingError("a process of the simulation ended before it simulated anything");
    SeedResult lost;
    lost.seed = *begun_;
    lost.findings = {WIFSIGNALED(status)
                         ? std::string("the process was ended by ") + strsignal(WTERMSIG(status))
                         : "the process ended with exit code " + std::to_string(WEXITSTATUS(status))};
    take_(lost);
    share_.first = *begun_ + share_.stride;
    begun_.reset();
    if (share_.first > share_.last) return false;
    start();
    return true;
  }

  SeedShare share_;
  int core_;
  const Command& command_;
  const Take& take_;
  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string text_;
  std::optional<uint64_t> begun_;
};

void Worker::start() {
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

void farm_seeds(uint64_t first, uint64_t last, int jobs, const Command& command, const Take& take) {
  const std::vector<int> cores = own_cores();
  const auto stride = std::min<uint64_t>(jobs, last - first + 1);
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint64_t i = 0; i < stride; ++i)
    workers.push_back(
        std::make_unique<Worker>(SeedShare{first + i, last, stride}, cores[i % cores.size()], command, take));
  while (!workers.empty()) {
    std::vector<pollfd> pipes;
    for (const auto& worker : workers) pipes.push_back({worker->pipe(), POLLIN, 0});
    if (::poll(pipes.data(), pipes.size(), -1) < 0) continue;
    for (std::size_t i = pipes.size(); i-- > 0;)
      if (pipes[i].revents != 0 && !workers[i]->read_on())
        workers.erase(workers.begin() + static_cast<int64_t>(i));
  }
}

}  // namespace tutti
