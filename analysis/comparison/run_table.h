#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/run_values.h"
#include "analysis/run_status.h"

namespace tutti {

// Which runs, and in which order.
struct RunQuery {
  std::vector<std::string> where =
      {};                    // "lr>0.1" each: an ending of a key or metric, = != < <= > >=, a value
  std::string sort = {};     // an ending of a metric, best first, or of a key; "" = as given
  bool by_headline = false;  // without `sort`: sorted by the headline
  bool by_last = false;      // last values of metrics count, not the best
};

// Runs side by side, a row each. Damaged runs are rows in any case, the last if sorted.
class RunTable {
 public:
  // Throws UserError for a name that no run has, with the nearest, and for a value of another type.
  RunTable(std::vector<RunStatus> runs, const RunQuery& query);

  // The runs that remain, in their order.
  std::vector<RunStatus> runs() const;
  const Headline& headline() const { return headline_; }

  // For people: state, progress, headline and differing keys, in at most `width` characters a line (0: any).
  std::string text(int64_t now_unix_s, int width) const;
  // For programs (RFC 4180): all metrics, "best NAME" beside each, and keys by their whole names.
  std::string csv() const;

 private:
  struct Row {
    RunStatus run;
    RecipeValues keys;
    std::string name;
  };

  std::vector<std::string> key_names() const;  // of all runs
  std::vector<std::string> metric_names() const;
  std::string meant(const std::string& ending, const std::string& where) const;
  // The best value of a metric, the figure or key of this name; nothing if the run has none.
  std::optional<std::string> value(const Row& row, const std::string& name) const;
  std::optional<double> metric(const Row& row, const std::string& name) const;
  void choose_headline(const std::string& sorted_by);
  void keep_where(const std::string& condition);
  void sort_by(const std::string& name);

  std::vector<Row> rows_;
  std::vector<std::string> differing_;  // keys
  Headline headline_;
  bool by_last_;
};

}  // namespace tutti
