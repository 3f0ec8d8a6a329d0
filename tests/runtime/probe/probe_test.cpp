#include "runtime/probe/probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace tutti {
namespace {

void reach(bool rare) {
  TUTTI_PROBE("sample: a function is called");
  if (rare) TUTTI_PROBE("sample: a function is called with a flag");
}

const Probe& probe_named(std::string_view name) {
  const auto probes = all_probes();
  return **std::ranges::find_if(probes, [&](const Probe* probe) { return name == probe->name; });
}

const Probe& plain() { return probe_named("sample: a function is called"); }
const Probe& rare() { return probe_named("sample: a function is called with a flag"); }

TEST(ProbeTest, ProbesAreKnownBeforeTheirLineIsReached) {
  clear_probes();
  EXPECT_FALSE(plain().is_hit);
  EXPECT_STREQ(plain().file, "tests/runtime/probe/probe_test.cpp");
  EXPECT_EQ(plain().line + 1, rare().line);
}

TEST(ProbeTest, ALineThatIsReachedHitsItsProbeAlone) {
  clear_probes();
  reach(false);
  EXPECT_TRUE(plain().is_hit);
  EXPECT_FALSE(rare().is_hit);
  reach(true);
  EXPECT_TRUE(rare().is_hit);
  clear_probes();
  EXPECT_FALSE(plain().is_hit);
  EXPECT_FALSE(rare().is_hit);
}

TEST(ProbeTest, UncountedProbesAreAsBefore) {
  clear_probes();
  reach(false);
  {
    const UncountedProbes uncounted;
    reach(true);
    EXPECT_TRUE(rare().is_hit);
  }
  EXPECT_TRUE(plain().is_hit);
  EXPECT_FALSE(rare().is_hit);
}

}  // namespace
}  // namespace tutti
