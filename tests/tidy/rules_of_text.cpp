#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "tests/tidy/function_length.h"
#include "tests/tidy/rules.h"

namespace tutti {
namespace {

constexpr int kMaxFunctionLines = 70;
constexpr size_t kMaxFileLines = 500;
constexpr size_t kMaxColumns = 110;

size_t columns(const std::string& utf8) {
  size_t count = 0;
  for (const char c : utf8) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

bool is_prose(const SourceFile& file) { return std::filesystem::path(file.path).extension() == ".md"; }

using LineTest = std::string (*)(const SourceFile& file, size_t index);  // "" or what is wrong

Findings each_line(const SourceTree& tree, LineTest test) {
  Findings findings;
  for (const SourceFile& file : tree) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string what = test(file, i);
      if (!what.empty()) findings.push_back(finding(file, i + 1, what));
    }
  }
  return findings;
}

std::string too_long(const SourceFile& file, size_t index) {
  const size_t count = columns(file.lines[index]);
  if (is_prose(file) || count <= kMaxColumns) return "";
  return "a line of " + std::to_string(count) + " columns; at most " + std::to_string(kMaxColumns);
}

std::string machine_path(const SourceFile& file, size_t index) {
  static const std::regex path(R"re((^|[^\w.$}/~-])/(work|home|root|tmp/build)(/|\b))re");
  return std::regex_search(file.lines[index], path) ? "a path of one machine" : "";
}

// Ends like a statement, and looks like one: a call, an operator, a bare word, a declaration.
bool looks_like_code(const std::string& comment) {
  static const std::regex ending(R"([;{]\s*$)");
  static const std::regex statement(
      R"(\w\(.*\)|\b(if|for|while|switch) ?\(|[=\]>]|\breturn\b|^\s*(//|/\*|\*)\s*[\w:]+( \w+)?\s*[;{])");
  return std::regex_search(comment, ending) && std::regex_search(comment, statement);
}

std::string dead_code(const SourceFile& file, size_t index) {
  static const std::regex disabled(R"(^\s*#\s*if\s+0\b)");
  if (!file.is_cpp()) return "";
  if (std::regex_search(file.lines[index], disabled)) return "code switched off by #if 0";
  return looks_like_code(file.comments[index]) ? "code in a comment" : "";
}

// "io/file_utils.cpp" -> the words that name nothing: folders, and the last word of the file's name.
std::string empty_word(const std::string& path) {
  static const std::set<std::string> words{"util", "utils",   "common",   "helper", "helpers",
                                           "misc", "manager", "managers", "base"};
  for (const auto& part : std::filesystem::path(path)) {
    const std::string stem = std::filesystem::path(part).stem();
    const std::string last = stem.substr(stem.rfind('_') + 1);
    if (words.count(last) > 0) return last;
  }
  return "";
}

}  // namespace

std::string finding(const SourceFile& file, size_t line, const std::string& what) {
  return file.path + (line > 0 ? ":" + std::to_string(line) : "") + ": " + what;
}

Findings long_functions(const SourceTree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    for (const FunctionSpan& span : find_functions(file.code)) {
      if (span.lines() <= kMaxFunctionLines) continue;
      findings.push_back(
          finding(file, span.first, "a function of " + std::to_string(span.lines()) + " lines"));
    }
  }
  return findings;
}

Findings long_files(const SourceTree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (is_prose(file) || file.lines.size() <= kMaxFileLines) continue;
    findings.push_back(finding(file, 0, std::to_string(file.lines.size()) + " lines"));
  }
  return findings;
}

Findings long_lines(const SourceTree& tree) { return each_line(tree, too_long); }
Findings absolute_paths(const SourceTree& tree) { return each_line(tree, machine_path); }
Findings commented_out_code(const SourceTree& tree) { return each_line(tree, dead_code); }

Findings empty_names(const SourceTree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    const std::string word = empty_word(file.path);
    if (!word.empty())
      findings.push_back(finding(file, 0, "'" + word + "' says nothing about what is in it"));
  }
  return findings;
}

Findings headers_without_pragma_once(const SourceTree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!file.is_header()) continue;
    if (file.lines.empty() || file.lines[0] != "#pragma once")
      findings.push_back(finding(file, 1, "no #pragma once"));
  }
  return findings;
}

// Two types of one name in one program are one to the linker: it keeps the member functions of either.
Findings types_of_one_name(const SourceTree& tree) {
  static const std::regex space(R"(^namespace (\S+) \{)");
  static const std::regex type(R"(^(?:struct|class) (\w+)(?: final)?(?: : .*)?(?: \{.*|,|)$)");
  std::map<std::string, std::string> headers;  // by the type's name, with its namespaces
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!file.is_header()) continue;
    std::string spaces;
    for (std::size_t i = 0; i < file.code.size(); ++i) {
      std::smatch name;
      if (std::regex_search(file.code[i], name, space)) spaces += name.str(1) + "::";
      if (!std::regex_search(file.code[i], name, type)) continue;
      const auto [known, is_new] = headers.emplace(spaces + name.str(1), file.path);
      if (!is_new) findings.push_back(finding(file, i + 1, known->second + " has a type of this name too"));
    }
  }
  return findings;
}

// A probe's record is in a section of the linker, where functions of headers would be there twice.
Findings ill_named_probes(const SourceTree& tree) {
  static const std::regex form("\"[a-z]+( [a-z]+)*: [^ ].*\"");
  std::map<std::string, std::string> places;  // by name
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!file.is_cpp() || file.path == "runtime/probe/probe.h") continue;
    for (std::size_t i = 0; i < file.code.size(); ++i) {
      if (file.code[i].find("TUTTI_PROBE(") == std::string::npos) continue;
      const bool breaks = file.strings[i].empty() && i + 1 < file.strings.size();
      const std::string name = file.strings[breaks ? i + 1 : i];
      const auto [known, is_new] = places.emplace(name, file.path);
      if (file.is_header()) findings.push_back(finding(file, i + 1, "a probe in a header"));
      if (!is_new) findings.push_back(finding(file, i + 1, known->second + " has a probe of this name too"));
      if (!std::regex_match(name, form))
        findings.push_back(finding(file, i + 1, "a probe's name is \"part: state\", and not " + name));
    }
  }
  return findings;
}

}  // namespace tutti
