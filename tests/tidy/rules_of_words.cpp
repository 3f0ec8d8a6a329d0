#include <iterator>
#include <regex>
#include <sstream>

#include "tests/tidy/rules.h"

namespace tutti {
namespace {

// A word or phrase that a reader has to guess at, and the field's words for it. A text without one of the
// stems, separated by spaces, is not searched: regular expressions are slow.
struct Word {
  std::vector<std::string> stems;
  std::regex pattern;
  std::string plain;
};

std::vector<std::string> split(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()};
}

// `take` and `rest` are left to readers: as common words they are plain. `patience` is PyTorch's term.
const std::vector<Word>& words() {
  struct Row {
    const char *stems, *pattern, *plain;
  };
  static const std::vector<Row> rows{
      {"aton", R"(\b[Bb]aton\b)", "run token"},
      {" Cast Cell eat erth", R"([a-z,] (Cast|Cell)\b|\b([Ss]eats?|[Bb]erths?)\b)",
       "actor refs, control block, endpoint, rank environment"},
      {"ate", R"(\b[Ff]ates?\b)", "stop token"},
      {"appening", R"(\b[Hh]appenings?\b)", "trace event"},
      {"oret answer", R"(\b[Ff]oret(old|ell)|\b[Rr]ecorded answers?\b)", "recorded input"},
      {"hing", R"(\b[Tt]hings?\b)", "digest key, or the noun that is meant"},
      {"utlet", R"(\b[Oo]utlets?\b)", "sender side of a queue"},
      {"hel", R"(\b[Ss]hel(f|ves)\b)", "store, retention"},
      {"Terms", R"(\b[A-Z]\w*Terms\b)", "options, filter"},
      {"rought", R"(\b[Bb]rought\b)", "user components"},
      {"Order Turn Ending Outside", R"([a-z,] (Order|Turn|Ending|Outside)\b)",
       "start request, agreement round, exit, environment"},
      {"over lack", R"(\b[Pp]ass(es|ed|ing) over\b|\b(may|might) lack\b)",
       "ignored, optional, may be missing"},
      {"ightly", R"(\b[Rr]ightly\b)", "reference run"},
      {"ell old", R"(\b[Tt](ell|ells|elling|old)\b)", "report, warn, log"},
      {"on", R"(\b([Gg]o|[Gg]oes|[Gg]oing|[Gg]one|[Ww]ent) on\b)", "continues, resumes"},
      {"Shortage TooLarge must_fit", R"(\b(Shortage|TooLarge|must_fit)\b)", "OutOfMemory report / error"},
      {"oid", R"(\b[Vv]oid (attempt|step)s?\b)", "aborted attempt, retried step"},
      {"StepRest", R"(\bStepRest\b)", "pending work, resume point"},
      {"start", R"(\b([Nn]ewest|[Ee]arlier|[Oo]ld|[Ff]irst|[Ss]econd|[Tt]hird|[Tt]wo) starts?\b)", "attempt"},
      {"start", R"(\b([Ss]everal|[Ee]ach|[Ee]very|[Aa]ny|[Aa]nother|[Rr]ecorded) starts?\b)", "attempt"},
      {"start", R"((^|[^-])\bstart [1-9]|\ba start (that|may)\b)", "attempt"},
      {"avers", R"(\b[Ss]avers\b)", "ranks that save"},
      {"atient ap look_rarely", R"(\b([Pp]atient|[Nn]aps?|look_rarely)\b)", "timeout, poll interval"},
      {"may_hang done_within StartLimit", R"(\b(may_hang|done_within|StartLimit)\b)",
       "watchdog, run with timeout"},
      {"Scarce Armed tr", R"(\b(Scarce|Armed)[A-Z]\w*|\b([Ss]trikes?|[Ss]truck)\b)",
       "failing, scheduled fault, inject"},
      {"data", R"(\b[Oo]wn data\b)", "per-rank dataset"},
      {"one", R"(\b[Ll]one(_job)?\b|\bLoneModel\b)", "single-process job, loaded model"},
      {"eed tor", R"(\b[Ss]eed (farm|lines?)\b|\b[Ss]tor(y|ies)\b)", "worker pool, wire format, summary"},
      {"Draw::at", R"(\bDraw::at\b)", "counter-based key, fold in"},
      {"put", R"(\bput_in\b|\b[Pp]uts? in\b)", "replace_all"},
      {"world.cpp", R"(\b(actors|commands)/world\.cpp\b)", "rank.cpp"},
      {"behind", R"(\b[Ll]eft behind\b)", "abandoned after a timeout"},
  };
  static const std::vector<Word> all = [] {
    std::vector<Word> table;
    for (const Row& row : rows) table.push_back({split(row.stems), std::regex(row.pattern), row.plain});
    return table;
  }();
  return all;
}

bool has_stem(const Word& word, const std::string& text) {
  for (const std::string& stem : word.stems)
    if (text.find(stem) != std::string::npos) return true;
  return false;
}

// Phrases of fixed texts: two of docs/recipe.md, and two keys of random numbers.
bool is_fixed(const SourceFile& file, const std::string& text) {
  struct Fixed {
    const char* path;
    const char* phrase;
  };
  static const std::vector<Fixed> all{
      {"algorithms/loop/options.cpp", "as time goes on"},
      {"job/sections.cpp", "newest starts whose journals stay"},
      {"data/readers/make_dataset.cpp", "own data"},
      {"runtime/actor/token_scheduler.cpp", "baton"},
  };
  for (const Fixed& one : all)
    if (file.path == one.path && text.find(one.phrase) != std::string::npos) return true;
  return false;
}

bool lists_words(const SourceFile& file) { return file.path.rfind("tests/tidy", 0) == 0; }

void add_words(const SourceFile& file, size_t line, const std::string& text, Findings& findings) {
  if (text.empty() || is_fixed(file, text)) return;
  std::smatch match;
  for (const Word& word : words())
    if (has_stem(word, text) && std::regex_search(text, match, word.pattern))
      findings.push_back(finding(file, line, "'" + match[0].str() + "'; say: " + word.plain));
}

struct TestName {
  size_t line = 0;
  std::string words;  // WhatIsNoFileIsSaid: "what is no file is said"
};

std::string words_of(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool begins = c >= 'A' && c <= 'Z';
    if ((begins || c == '_') && !text.empty()) text += ' ';
    if (c != '_') text += begins ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

std::vector<TestName> test_names(const SourceFile& file) {
  static const std::regex cpp(R"(\bTEST(?:_[FP])?\(\s*\w+\s*,\s*(\w+)\s*\))");
  static const std::regex python(R"(\bdef test_(\w+)\()");
  std::vector<TestName> names;
  const auto& lines = file.is_cpp() ? file.code : file.lines;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(file.is_cpp() ? "TEST" : "def test_") == std::string::npos) continue;
    const std::string both = lines[i] + (i + 1 < lines.size() ? " " + lines[i + 1] : "");
    std::smatch match;
    const bool found = std::regex_search(both, match, file.is_cpp() ? cpp : python);
    if (found && static_cast<size_t>(match.position()) < lines[i].size())
      names.push_back({i + 1, words_of(match[1])});
  }
  return names;
}

bool begins_with_pronoun(const std::string& name) {
  static const std::regex pronoun(
      "^((what(ever)?|who(ever)?|whose|which|that|those|these|this|it|they|ones|others|none|nothing|"
      "everything"
      "|something|anything|nobody|everybody|somebody|anybody|neither)\\b"
      "|one (that|of|whose|who|is|has|may|must|does|needs)\\b"
      "|(an?|the|another|every|each|no|any) (\\w+ )?one\\b|only one (is|may)\\b|(\\w+ ){1,2}ones\\b"
      "|(all|each|both|many|several|few|some|most|any|another|other) "
      "(of|is|are|was|were|has|have|may|can|must|does|do)\\b)");
  return std::regex_search(name, pronoun);
}

}  // namespace

Findings unclear_words(const SourceTree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!file.is_cpp() || lists_words(file)) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      add_words(file, i + 1, file.comments[i], findings);
      add_words(file, i + 1, file.strings[i], findings);
    }
    for (const TestName& name : test_names(file)) add_words(file, name.line, name.words, findings);
  }
  return findings;
}

Findings pronouns_as_subjects(const SourceTree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (file.path.rfind("tests/", 0) != 0 && file.path.rfind("examples/", 0) != 0) continue;
    for (const TestName& name : test_names(file))
      if (begins_with_pronoun(name.words))
        findings.push_back(finding(file, name.line, "'" + name.words + "': a test's subject is a noun"));
  }
  return findings;
}

}  // namespace tutti
