#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/runtime/scratch.h"

namespace tutti {

// An arrow of a trace that joins two ranks: the threads and the slices that it leaves from and arrives at,
// and when, in microseconds.
struct TraceArrow {
  struct End {
    int64_t rank = -1;
    std::string thread, slice;
    double us = 0;
    std::string text() const {
      char time[32];
      std::snprintf(time, sizeof time, "@%g", us);
      return thread + " of rank " + std::to_string(rank) + " " + time;
    }
  };
  End from, to;
  std::string text() const { return from.text() + " -> " + to.text(); }
};

// Reads them as a viewer does, event by event; each arrow of the trace has to have one start and one end.
class TraceArrows {
 public:
  explicit TraceArrows(const std::string& path) {
    const auto trace = nlohmann::json::parse(read_text(path));
    for (const auto& event : trace.at("traceEvents")) take(event);
    for (const auto& [id, start] : starts_)
      EXPECT_TRUE(ends_.contains(id)) << "ends nowhere: " << start.text();
    for (const auto& [id, end] : ends_) {
      EXPECT_TRUE(starts_.contains(id)) << "starts nowhere: " << end.text();
      if (starts_[id].rank != end.rank) between_ranks.push_back({starts_[id], end});
    }
  }

  std::vector<TraceArrow> between_ranks;

 private:
  void take(const nlohmann::json& event) {
    const std::string phase = event.at("ph");
    const int64_t tid = event.at("tid");
    if (phase == "M" && event.at("name") == "thread_name") threads_[tid] = event.at("args").at("name");
    if (phase == "B") slices_[tid].push_back(event.at("name"));
    if (phase == "E") slices_.at(tid).pop_back();
    if (phase == "s") add(starts_, event, tid);
    if (phase == "f") add(ends_, event, tid);
  }

  using Ends = std::map<int64_t, TraceArrow::End>;
  void add(Ends& ends, const nlohmann::json& event, int64_t tid) {
    ASSERT_FALSE(slices_[tid].empty()) << "outside of all slices: " << event;
    const TraceArrow::End end{event.at("pid").get<int64_t>() - 1, threads_.at(tid), slices_[tid].back(),
                              event.at("ts")};
    EXPECT_TRUE(ends.emplace(event.at("id").get<int64_t>(), end).second) << "twice: " << event;
  }

  std::map<int64_t, std::string> threads_;
  std::map<int64_t, std::vector<std::string>> slices_;  // open ones, by thread
  Ends starts_, ends_;
};

}  // namespace tutti
