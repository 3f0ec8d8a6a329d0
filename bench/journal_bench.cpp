// Measures the writing and reading of a journal, on the disk of TMPDIR.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "io/journal/journal_reader.h"
#include "io/journal/journal_writer.h"

namespace tutti {
namespace {

// A journal in a temporary folder, which the destructor removes.
class Scratch {
 public:
  Scratch() {
    std::string pattern = std::filesystem::temp_directory_path() / "tutti-bench-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    writer = std::make_unique<JournalWriter>(path(), "{}");
  }
  ~Scratch() {
    writer.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ + "/journal"; }

  std::unique_ptr<JournalWriter> writer;

 private:
  std::string folder_;
};

constexpr std::string_view kActors[] = {"loader", "compute", "sync", "checkpointer"};
constexpr std::string_view kMessages[] = {"BatchReady", "RunEntry", "FinishStep", "PassDone"};

// One delivery every 3 us, from four threads.
void append(JournalWriter& writer, int64_t i, size_t thread) {
  const TimePoint time(Nanoseconds(3'000 * i));
  writer.delivery(kActors[thread % 4], kActors[i % 4], kMessages[(i >> 2) % 4], time);
}

void append_delivery(benchmark::State& state) {
  static std::unique_ptr<Scratch> scratch;
  if (state.thread_index() == 0) scratch = std::make_unique<Scratch>();
  int64_t i = 0;
  for (auto _ : state) append(*scratch->writer, i++, state.thread_index());
  state.SetItemsProcessed(i);
  if (state.thread_index() != 0) return;
  if (!scratch->writer->incomplete().empty()) state.SkipWithError(scratch->writer->incomplete().c_str());
  // Iterations of all threads; bytes a record are MB a million records.
  state.counters["MB/million"] = static_cast<double>(scratch->writer->bytes()) / (i * state.threads());
  scratch.reset();
}
BENCHMARK(append_delivery)->Threads(1)->Threads(2)->Threads(4)->UseRealTime();

void read_delivery(benchmark::State& state) {
  constexpr int64_t kMany = 1'000'000;
  const Scratch scratch;
  for (int64_t i = 0; i < kMany; ++i) append(*scratch.writer, i, 0);
  for (auto _ : state) {
    JournalCursor cursor(scratch.path());
    int64_t seen = 0;
    while (cursor.next()) ++seen;
    if (seen != kMany + 1) state.SkipWithError("records are missing");
  }
  state.SetItemsProcessed(state.iterations() * kMany);
}
BENCHMARK(read_delivery)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();
