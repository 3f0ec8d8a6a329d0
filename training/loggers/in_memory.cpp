#include "training/loggers/in_memory.h"

#include <algorithm>

namespace tutti {
namespace {

// The metrics or traces of a record.
LoggedMetrics numbers_of(const LogEntry& entry) {
  if (const auto* metrics = std::get_if<LoggedMetrics>(&entry.what)) return *metrics;
  LoggedMetrics numbers;
  if (const auto* traces = std::get_if<LoggedTraces>(&entry.what))
    for (const auto& [name, ran] : *traces) numbers.emplace_back(name, ran);
  return numbers;
}

}  // namespace

void InMemoryLogger::log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) {
  add({time, all});
}
void InMemoryLogger::log_metrics(const LoggedMetrics& metrics, const LogTime& time) { add({time, metrics}); }
void InMemoryLogger::log_traces(const LoggedTraces& traces, const LogTime& time) { add({time, traces}); }
void InMemoryLogger::log_text(const LoggedText& text, const LogTime& time) { add({time, text}); }
void InMemoryLogger::log_table(const LoggedTable& table, const LogTime& time) { add({time, table}); }
void InMemoryLogger::log_images(const LoggedImages& images, const LogTime& time) { add({time, images}); }

void InMemoryLogger::add(LogEntry entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
}

std::vector<LogEntry> InMemoryLogger::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

std::vector<InMemoryLogger::Point> InMemoryLogger::get_timeseries(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<Point> points;
  for (const auto& entry : entries_)
    for (const auto& [key, value] : numbers_of(entry))
      if (key == name) points.push_back({entry.time, value});
  return points;
}

std::vector<std::string> InMemoryLogger::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& entry : entries_)
    for (const auto& [key, value] : numbers_of(entry))
      if (std::find(names.begin(), names.end(), key) == names.end()) names.push_back(key);
  return names;
}

template <class Kind>
std::vector<Kind> InMemoryLogger::all_of() const {
  const std::lock_guard lock(mutex_);
  std::vector<Kind> records;
  for (const auto& entry : entries_)
    if (const auto* record = std::get_if<Kind>(&entry.what)) records.push_back(*record);
  return records;
}

std::vector<LoggedTable> InMemoryLogger::tables() const { return all_of<LoggedTable>(); }
std::vector<LoggedImages> InMemoryLogger::images() const { return all_of<LoggedImages>(); }

LoggedHyperparameters InMemoryLogger::hyperparameters() const {
  const std::lock_guard lock(mutex_);
  LoggedHyperparameters hyperparameters;
  for (const auto& entry : entries_)
    if (const auto* all = std::get_if<LoggedHyperparameters>(&entry.what))
      hyperparameters.insert(hyperparameters.end(), all->begin(), all->end());
  return hyperparameters;
}

}  // namespace tutti
