#include "training/callbacks/monitors/system_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr const char* kMemory = R"(MemTotal:    1000 kB
MemFree:      100 kB
MemAvailable: 400 kB
Buffers:       50 kB
Cached:       200 kB
Active:       300 kB
Inactive:     150 kB
Shmem:         20 kB
Slab:          80 kB
SReclaimable:  30 kB
)";

constexpr const char* kNetwork = R"(Inter-|   Receive
 face |bytes
    lo: 100 1 2 3 0 0 0 0 200 4 5 6 0 0 0 0
  eth0:1000 10 20 30 0 0 0 0 2000 40 50 60 0 0 0 0
)";

// A /proc as Linux writes it.
class FakeProc {
 public:
  FakeProc() {
    std::filesystem::create_directory(folder_.path("net"));
    write_text(folder_.path("meminfo"), kMemory);
    write_text(folder_.path("net/dev"), kNetwork);
    cpu("100 0 50 800 50 0 0 0");
  }
  void cpu(const std::string& ticks) { write_text(folder_.path("stat"), "cpu  " + ticks + " 0 0\ncpu0 1\n"); }
  const std::string& path() const { return folder_.path(); }

 private:
  Scratch folder_;
};

std::map<std::string, double> look(SystemMetrics& metrics) {
  const LoggedMetrics found = metrics.read();
  return {found.begin(), found.end()};
}

TEST(SystemMetricsTest, ProcessorsAreThoseSinceTheLastLook) {
  FakeProc proc;
  SystemMetrics metrics(proc.path());
  EXPECT_EQ(look(metrics).at("cpu_percentage"), 0.0);
  proc.cpu("110 5 60 870 55 0 0 0");
  EXPECT_DOUBLE_EQ(look(metrics).at("cpu_percentage"), 25.0);
}

TEST(SystemMetricsTest, MemoryIsInPsutilsWords) {
  const FakeProc proc;
  SystemMetrics metrics(proc.path());
  const auto found = look(metrics);
  EXPECT_EQ(found.at("cpu_memory_total"), 1000 * 1024);
  EXPECT_EQ(found.at("cpu_memory_available"), 400 * 1024);
  EXPECT_DOUBLE_EQ(found.at("cpu_memory_percent"), 60.0);
  EXPECT_EQ(found.at("cpu_memory_used"), 620 * 1024);
  EXPECT_EQ(found.at("cpu_memory_cached"), 230 * 1024);
  EXPECT_EQ(found.at("cpu_memory_shared"), 20 * 1024);
  EXPECT_EQ(found.at("cpu_memory_inactive"), 150 * 1024);
}

TEST(SystemMetricsTest, NetworkIsOfAllInterfaces) {
  const FakeProc proc;
  SystemMetrics metrics(proc.path());
  const auto found = look(metrics);
  EXPECT_EQ(found.at("network_bytes_recv"), 1100);
  EXPECT_EQ(found.at("network_bytes_sent"), 2200);
  EXPECT_EQ(found.at("network_packets_recv"), 11);
  EXPECT_EQ(found.at("network_packets_sent"), 44);
  EXPECT_EQ(found.at("network_errin"), 22);
  EXPECT_EQ(found.at("network_errout"), 55);
  EXPECT_EQ(found.at("network_dropin"), 33);
  EXPECT_EQ(found.at("network_dropout"), 66);
}

TEST(SystemMetricsTest, MetricsUnknownToTheSystemAreLeftOut) {
  SystemMetrics metrics("/proc/no such folder");
  for (const auto& [key, value] : look(metrics)) EXPECT_THAT(key, HasSubstr("disk_memory_"));
}

TEST(SystemMetricsTest, RootFileSystemsPartsAreNoMoreThanTheWhole) {
  SystemMetrics metrics;
  const auto found = look(metrics);
  EXPECT_GT(found.at("disk_memory_total"), 0);
  EXPECT_LE(found.at("disk_memory_used") + found.at("disk_memory_free"), found.at("disk_memory_total"));
  EXPECT_NEAR(
      found.at("disk_memory_percent"),
      100 * found.at("disk_memory_used") / (found.at("disk_memory_used") + found.at("disk_memory_free")),
      1e-9);
}

}  // namespace
}  // namespace tutti
