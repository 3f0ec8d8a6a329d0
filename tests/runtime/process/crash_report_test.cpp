#include "runtime/process/crash_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "runtime/actor/signal_stack.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::KilledBySignal;
using testing::Not;

class CrashReportDeathTest : public testing::Test {
 protected:
  // Ends as `fault` does, in a process of its own; what is in the log then.
  template <class End>
  std::string log_of(const std::function<void()>& fault, const End& end) {
    const TimePoint now = std::chrono::steady_clock::now();
    for (int step = 0; step < 300; ++step)
      recorder_.record({now - std::chrono::milliseconds(1500), TraceKind::kBackwardDone, step, -7});
    EXPECT_EXIT(fail(fault), end, "");
    return read_text(path_);
  }

  void fail(const std::function<void()>& fault) {
    const CrashReport report(recorder_, 3, path_);
    fault();
  }

  Scratch folder_;
  std::string path_ = folder_.path("rank-3.log");
  RingRecorder recorder_;
};

TEST_F(CrashReportDeathTest, TheLogHasTheLastThatWasDone) {
  const std::string text = log_of([] { std::raise(SIGSEGV); }, KilledBySignal(SIGSEGV));
  EXPECT_THAT(text, HasSubstr("rank 3 is ended by signal 11 (SIGSEGV); the last that was done:\n"));
  EXPECT_THAT(text, ContainsRegex("\n {4,}[1-9][0-9]*\\.[0-9]{3} s ago  compute      backward done "
                                  "\\(after step 299, -7\\)\n$"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 101);
}

TEST_F(CrashReportDeathTest, OneRankOfAProcessAfterTheOther) {
  RingRecorder second;
  second.record({std::chrono::steady_clock::now(), TraceKind::kVerdict, 8});
  const auto both = [&] {
    const CrashReport report(second, 4, path_);
    std::raise(SIGFPE);
  };
  const std::string text = log_of(both, KilledBySignal(SIGFPE));
  EXPECT_THAT(text, HasSubstr("rank 3 is ended by signal 8 (SIGFPE)"));
  EXPECT_THAT(text, HasSubstr("rank 4 is ended by signal 8 (SIGFPE)"));
  EXPECT_THAT(text, HasSubstr("s ago  sync         verdict (after step 8, 0)"));
}

TEST_F(CrashReportDeathTest, AnExceptionThatNobodyCatchesIsOneToo) {
  const auto fault = [] { std::thread([] { throw std::runtime_error("nobody catches it"); }).join(); };
  EXPECT_THAT(log_of(fault, KilledBySignal(SIGABRT)), HasSubstr("(SIGABRT)"));
}

// Returns where `deep` is not so.
int dig(const volatile bool& deep, int depth) {
  volatile char here[4096];
  here[0] = static_cast<char>(depth);
  return deep ? dig(deep, depth + 1) + here[0] : 0;
}

TEST_F(CrashReportDeathTest, AStackThatRanOutIsOneToo) {
  const auto fault = [] {
    std::thread([] {
      const SignalStack of_handlers;
      const volatile bool deep = true;
      std::printf("%d", dig(deep, 0));
    }).join();
  };
  EXPECT_THAT(log_of(fault, KilledBySignal(SIGSEGV)), HasSubstr("(SIGSEGV)"));
}

TEST_F(CrashReportDeathTest, ThePreviousHandlerGetsTheSignal) {
  const auto leave = [](int) { std::_Exit(42); };
  const auto previous = std::signal(SIGILL, leave);
  const std::string text = log_of([] { std::raise(SIGILL); }, testing::ExitedWithCode(42));
  std::signal(SIGILL, previous);
  EXPECT_THAT(text, HasSubstr("(SIGILL)"));
}

constexpr std::pair<int, const char*> kOthers[] = {
    {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},
    {SIGTRAP, "SIGTRAP"}, {SIGQUIT, "SIGQUIT"}, {SIGHUP, "SIGHUP"},
    {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGALRM, "SIGALRM"},
};

TEST_F(CrashReportDeathTest, OtherDeadlySignalsAreReportedToo) {
  for (const auto& [signal, name] : kOthers) {
    const auto previous = std::signal(signal, SIG_DFL);
    const std::string text = log_of([number = signal] { std::raise(number); }, KilledBySignal(signal));
    std::signal(signal, previous);
    EXPECT_THAT(text, HasSubstr("is ended by signal " + std::to_string(signal) + " (" + name + ")"));
  }
}

// As nohup ignores SIGHUP, and a run the limit on the size of its files.
TEST_F(CrashReportDeathTest, IgnoredSignalsStayIgnored) {
  for (const auto& [signal, name] : kOthers) {
    const auto previous = std::signal(signal, SIG_IGN);
    const auto resumes = [number = signal] {
      std::raise(number);
      std::_Exit(42);
    };
    const std::string text = log_of(resumes, testing::ExitedWithCode(42));
    std::signal(signal, previous);
    EXPECT_THAT(text, Not(HasSubstr("is ended by signal"))) << name;
  }
}

// Sent by the kernel, and not by a process.
TEST_F(CrashReportDeathTest, ALimitOnTimeIsOneToo) {
  const auto previous = std::signal(SIGXCPU, SIG_DFL);
  const auto computes = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    rlimit limit{};
    ::getrlimit(RLIMIT_CPU, &limit);
    limit.rlim_cur = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1);
    ::setrlimit(RLIMIT_CPU, &limit);
    for (volatile int64_t count = 0;;) count = count + 1;
  };
  const std::string text = log_of(computes, KilledBySignal(SIGXCPU));
  std::signal(SIGXCPU, previous);
  EXPECT_THAT(text, HasSubstr("(SIGXCPU)"));
}

TEST_F(CrashReportDeathTest, ADestroyedReportIsSilent) {
  const auto after = [] { std::raise(SIGSEGV); };
  EXPECT_EXIT(
      {
        { const CrashReport report(recorder_, 3, path_); }
        after();
      },
      KilledBySignal(SIGSEGV), "");
  EXPECT_THAT(read_text(path_), Not(HasSubstr("the last that was done")));
}

}  // namespace
}  // namespace tutti
