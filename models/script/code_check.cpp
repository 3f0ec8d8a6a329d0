#include "models/script/code_check.h"

#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/tree_views.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "models/torch/known_operators.h"
#include "runtime/error.h"

namespace tutti::script {
namespace {

namespace jit = torch::jit;

constexpr std::size_t kMostBrackets = 500;  // within each other, since libtorch's reader of code is recursive
constexpr std::size_t kMostDepth = 2000;    // of what it makes of the code
constexpr std::string_view kClassesOfLibtorch = "__torch__.torch.classes";

std::string dotted(const jit::TreeRef& tree) {
  if (tree->kind() == jit::TK_VAR) return jit::Var(tree).name().name();
  if (tree->kind() != '.') return "";
  const jit::Select select(tree);
  const std::string before = dotted(select.value().tree());
  return before.empty() ? "" : before + "." + select.selector().name();
}

bool is_plain_type(const c10::TypePtr& type) {
  using enum c10::TypeKind;
  if (const auto optional = type->cast<c10::OptionalType>()) return is_plain_type(optional->getElementType());
  constexpr std::array kPlain{IntType,    FloatType,  ComplexType,  BoolType,
                              NumberType, StringType, DeviceObjType};
  return std::ranges::find(kPlain, type->kind()) != kPlain.end();
}

// True for an operator that libtorch may call as it reads the code: all arguments may be constants.
bool may_run_early(const std::string& name) {
  return std::ranges::any_of(
      jit::getAllOperatorsFor(c10::Symbol::fromQualString(name)), [](const auto& overload) {
        return std::ranges::all_of(overload->schema().arguments(),
                                   [](const c10::Argument& given) { return is_plain_type(given.type()); });
      });
}

class Check {
 public:
  explicit Check(std::string record) : record_(std::move(record)) {}

  // A source file as libtorch's importer reads it.
  void look_at(const std::shared_ptr<jit::Source>& source) {
    jit::Parser parser(source);
    jit::Lexer& lexer = parser.lexer();
    if (lexer.cur().kind == jit::TK_IDENT && lexer.cur().text() == "op_version_set") skip_line(lexer);
    for (;;) {
      while (lexer.cur().kind == jit::TK_IMPORT) skip_line(lexer);
      if (lexer.cur().kind == jit::TK_EOF) return;
      if (lexer.cur().kind == jit::TK_CLASS_DEF)
        look_at_class(jit::ClassDef(parser.parseClass()));
      else
        look_at(parser.parseFunction(/*is_method=*/false));
    }
  }

 private:
  static void skip_line(jit::Lexer& lexer) {
    while (lexer.cur().kind != jit::TK_NEWLINE && lexer.cur().kind != jit::TK_EOF) lexer.next();
    lexer.nextIf(jit::TK_NEWLINE);
  }

  std::string at(const std::string& what, const jit::TreeRef& tree) const {
    const auto line = tree->range().file_line_col();
    return "'" + what + "' (" + record_ + (line ? ":" + std::to_string(std::get<1>(*line)) : "") + ")";
  }

  void look_at_class(const jit::ClassDef& type) const {
    for (const jit::Stmt& statement : type.body()) {
      if (statement.kind() != jit::TK_DEF)
        require_no_call(statement.tree(), "a constant of a class");
      else if (jit::Def(statement.tree()).name().name() == "__setstate__")
        throw UserError(at("__setstate__", statement.tree()) +
                        " is code that runs when the file is loaded; tutti loads no file that has such code");
      look_at(statement.tree());
    }
  }

  // Defaults of arguments are computed when the file is loaded; devices are written as calls.
  void require_no_call(const jit::TreeRef& tree, const char* where) const {
    if (tree->kind() == jit::TK_APPLY && dotted(jit::Apply(tree).callee().tree()) != "torch.device")
      throw UserError(at(where, tree) + " is computed by a call, which runs when the file is loaded");
    for (const jit::TreeRef& branch : tree->trees()) require_no_call(branch, where);
  }

  void look_at(const jit::TreeRef& tree, std::size_t depth = 0) const {
    if (depth > kMostDepth) throw UserError("its code '" + record_ + "' is nested too deeply");
    if (tree->kind() == jit::TK_PARAM) require_no_call(tree, "the default of an argument");
    if (tree->kind() == '.') look_at_name(tree);
    for (const jit::TreeRef& branch : tree->trees()) look_at(branch, depth + 1);
  }

  // `torch.NAME`, `ops.SPACE.NAME`, or a value's method: operators beside those that the file defines.
  void look_at_name(const jit::TreeRef& tree) const {
    const std::string name = dotted(tree), own = jit::Select(tree).selector().name();
    if (name.starts_with(kClassesOfLibtorch))
      throw UserError(at(name, tree) + " is refused: it is a class of libtorch's, and none of the file's");
    std::string op = "aten::" + own;
    if (name.starts_with("ops.") && std::ranges::count(name, '.') == 2)
      op = name.substr(4, name.size() - 5 - own.size()) + "::" + own;
    if (!is_known_operator(op) && may_run_early(op)) refuse_operator(at(op, tree));
  }

  std::string record_;
};

void require_shallow(const ScriptCode& code) {
  std::size_t depth = 0;
  for (const char letter : code.text) {
    if (letter == '(' || letter == '[' || letter == '{') ++depth;
    if ((letter == ')' || letter == ']' || letter == '}') && depth > 0) --depth;
    if (depth > kMostBrackets)
      throw UserError("its code '" + code.record + "' has brackets nested too deeply");
  }
}

}  // namespace

void require_plain(const ScriptCode& code) {
  require_shallow(code);
  Check(code.record).look_at(std::make_shared<jit::Source>(code.text, code.record, 1));
}

}  // namespace tutti::script
