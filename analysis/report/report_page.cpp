#include "analysis/report/report_page.h"

#include <ctime>
#include <string_view>

#include "analysis/comparison/short_names.h"
#include "analysis/report/report_data.h"
#include "analysis/report/reported_run.h"
#include "io/journal/recorded_run.h"
#include "io/replaced_file.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr uint64_t kImageBytes = 6 << 20;  // of a page, before they are written as text

std::string title_of(const std::vector<ReportedRun>& runs) {
  std::string title;
  for (const ReportedRun& run : runs) title += (title.empty() ? "" : ", ") + run.name;
  return as_utf8(title);
}

// Safe as text and as an attribute's value.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

// The template with its placeholders "@NAME@" filled in, from front to back: values are not searched.
std::string filled(std::string_view text,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string page;
  for (const auto& [placeholder, value] : values) {
    const auto at = text.find(placeholder);
    TUTTI_ASSERT(at != text.npos, "no " + std::string(placeholder) + " in the rest of the page");
    page.append(text.substr(0, at)).append(value);
    text.remove_prefix(at + placeholder.size());
  }
  return page.append(text);
}

std::string page_of(const std::vector<ReportedRun>& runs) {
  return filled(kPageHtml, {{"@TITLE@", escaped(title_of(runs))},
                            {"@CSS@", kPageCss},
                            {"@MADE@", utc_now()},
                            {"@DATA@", report_json(runs)},
                            {"@CHARTS@", kChartsJs},
                            {"@TABLES@", kTablesJs},
                            {"@PAGE@", kPageJs}});
}

void write(Disk& disk, const std::string& path, const std::string& text) try {
  replace_file(disk, path, text);
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

}  // namespace

std::string write_report(Disk& disk, const std::vector<std::string>& runs, const std::string& out) {
  std::vector<ReportedRun> read;
  for (const std::string& run : runs) read.push_back(read_run(disk, run, kImageBytes / runs.size()));
  const std::vector<std::string> names = distinct_names(runs);
  for (std::size_t i = 0; i < read.size(); ++i) read[i].name = names[i];
  write(disk, out, page_of(read));
  std::string ignored;
  for (const std::string& run : runs) ignored += ignored_attempts(run);
  return out + ": " + std::to_string(runs.size()) + (runs.size() == 1 ? " run" : " runs") +
         "; open it in a browser" + ignored;
}

}  // namespace tutti
