#include "cli/help/described.h"
#include "recipe/placeholders.h"

namespace tutti {
namespace {

constexpr const char* kEnd = R"(.SH EXIT STATUS
.TP
.B 0
All went well.
.TP
.B 1
The run failed; \fBdiff\fR and \fBreplay\fR: the runs differ.
.TP
.B 2
The command line, the recipe or the data are wrong. The message names file, line, key and value.
.TP
.B 3
The last checkpoint could not be written.
.SH ENVIRONMENT
.TP
.B ATEN_CPU_CAPABILITY
avx512, avx2 or default: the vector instructions to compute with. Others round otherwise.
.TP
.B OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK
Set by mpirun and srun: the rank of the process.
.SH FILES
.TP
.I RUN/metrics.jsonl
The metrics, a line a step.
.TP
.I RUN/checkpoints
Checkpoints; \fIlatest\fR links to the newest.
.TP
.I RUN/journal
What each rank did, for replay, diff and timeline.
.TP
.I RUN/log
A log of each rank.
.SH SEE ALSO
.BR mpirun (1),
.BR srun (1),
.BR h5dump (1)
)";

std::string escaped(std::string text) {
  replace_all(text, "\\", "\\e");
  replace_all(text, "-", "\\-");
  return text;
}

// A line of text may not begin like a request.
std::string text_line(const std::string& text) {
  const std::string line = escaped(text);
  return (line.starts_with('.') || line.starts_with('\'') ? "\\&" : "") + line + '\n';
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }

std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string option_term(const DescribedOption& option) {
  if (option.positional) return italic(option.names[0]);
  std::string term;
  for (const auto& name : option.names) term += (term.empty() ? "" : ", ") + bold(name);
  return option.is_flag() ? term : term + ' ' + italic(option.placeholder);
}

std::string options_text(const std::vector<DescribedOption>& options) {
  std::string out;
  for (const auto& option : options) out += ".TP\n" + option_term(option) + '\n' + text_line(option.doc);
  return out;
}

std::string usage(const DescribedCommand& command) {
  std::string out = bold("tutti " + command.name);
  for (const auto& option : command.positionals())
    out += option.required ? ' ' + italic(option.names[0]) : " [" + italic(option.names[0]) + ']';
  return out + " [" + italic("options") + "]";
}

std::string command_text(const DescribedCommand& command) {
  std::string out = ".SS tutti " + command.name + '\n' + text_line(command.doc + '.') + ".PP\n" +
                    usage(command) + '\n' + options_text(command.positionals()) +
                    options_text(command.named());
  if (command.examples.empty()) return out;
  out += ".PP\nExamples:\n.PP\n.nf\n.RS 4\n";
  for (const auto& line : command.examples) out += text_line(line);
  return out + ".RE\n.fi\n";
}

}  // namespace

std::string man_page(const std::vector<DescribedCommand>& commands) {
  std::string out = ".TH TUTTI 1 \"\" \"tutti " TUTTI_VERSION
                    "\" \"User Commands\"\n.SH NAME\ntutti \\- distributed deep\\-learning training\n"
                    ".SH SYNOPSIS\n.B tutti\n.I COMMAND\n[\\fIarguments\\fR]\n.PP\n"
                    ".B mpirun \\-np\n.I N\n.B tutti train\n.I RECIPE\n.SH DESCRIPTION\n"
                    "Trains models on CPUs, on one machine or many, as a recipe in TOML says.\n"
                    ".B tutti init\nwrites a first recipe for a data file,\n.B tutti explain\n"
                    "says what a key or kind of a recipe means.\n";
  out += ".SH OPTIONS\n" + options_text(commands.front().named()) + ".SH COMMANDS\n";
  for (const auto& command : commands)
    if (!command.name.empty()) out += command_text(command);
  return out + kEnd;
}

}  // namespace tutti
