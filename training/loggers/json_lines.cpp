#include "training/loggers/json_lines.h"

#include "io/json/json_line.h"

namespace tutti {
namespace {

JsonFields fields_of(const char* type, const LogTime& time) {
  return {
      {"type", std::string(type)}, {"step", time.step}, {"batch", time.at.batch}, {"epoch", time.epoch()}};
}

template <class Pairs>
std::string object_of(const Pairs& pairs) {
  JsonFields fields;
  for (const auto& [name, value] : pairs) fields.emplace_back(name, JsonValue(value));
  return json_line(fields);
}

template <class... Fields>
std::string line_of(const char* type, const LogTime& time, Fields... more) {
  JsonFields fields = fields_of(type, time);
  (fields.push_back(std::move(more)), ...);
  return json_line(fields);
}

using Field = JsonFields::value_type;

}  // namespace

std::string json_of(const LoggedHyperparameters& all) {
  JsonFields fields;
  for (const auto& [name, value] : all)
    fields.emplace_back(name, std::visit([](const auto& one) { return JsonValue(one); }, value));
  return json_line(fields);
}

std::string json_of(const LoggedTable& table) {
  return json_line({{"columns", table.columns}, {"rows", table.rows}});
}

void JsonLines::log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) {
  line(line_of("hyperparameters", time, Field{"hyperparameters", JsonText{json_of(all)}}));
}

void JsonLines::log_metrics(const LoggedMetrics& metrics, const LogTime& time) {
  line(line_of("metrics", time, Field{"metrics", JsonText{object_of(metrics)}}));
}

void JsonLines::log_traces(const LoggedTraces& traces, const LogTime& time) {
  LoggedMetrics numbers(traces.begin(), traces.end());
  line(line_of("traces", time, Field{"traces", JsonText{object_of(numbers)}}));
}

void JsonLines::log_text(const LoggedText& text, const LogTime& time) {
  line(line_of("text", time, Field{"name", text.name}, Field{"text", text.text}));
}

void JsonLines::log_table(const LoggedTable& table, const LogTime& time) {
  line(line_of("table", time, Field{"name", table.name}, Field{"columns", table.columns},
               Field{"rows", table.rows}));
}

std::string JsonLines::start_line(const LogStart& start) {
  return json_line({{"type", std::string("start")},
                    {"step", start.step},
                    {"batch", start.at.batch},
                    {"epoch", LogTime{start.step, start.at}.epoch()},
                    {"run_name", start.run_name},
                    {"run_dir", start.run_dir},
                    {"rank", int64_t{start.rank}},
                    {"world", int64_t{start.world}},
                    {"goes_on", start.resumes}});
}

}  // namespace tutti
