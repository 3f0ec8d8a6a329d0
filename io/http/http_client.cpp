#include "io/http/http_client.h"

#include <dlfcn.h>

#include <atomic>
#include <cctype>
#include <cstdint>
#include <utility>

#include "runtime/broken_pipe.h"
#include "runtime/error.h"
#include "runtime/process/shared_symbol.h"
#include "runtime/text.h"

namespace tutti {
namespace {

// The part of libcurl's interface that is used, whose numbers never change (curl/curl.h): the build needs no
// header of libcurl.
namespace curl {

struct List;

enum Option : int {
  kVerifyPeer = 64,
  kNoProgress = 43,
  kVerifyHost = 81,
  kNoSignal = 99,
  kTimeoutMs = 155,
  kConnectTimeoutMs = 156,
  kProtocols = 181,
  kWriteData = 10001,
  kUrl = 10002,
  kPostFields = 10015,
  kHeaders = 10023,
  kCustomRequest = 10036,
  kProgressData = 10057,
  kCertificates = 10065,
  kWriteFunction = 20011,
  kProgressFunction = 20219,
  kPostFieldSize = 30120,
};
constexpr int kResponseCode = 0x200002;  // of getinfo
constexpr long kHttpAndHttps = 3;

// Debian's HDF5 brings libcurl, and other builds of HDF5 may not.
struct Library {
  void* (*make)();
  void (*free)(void*);
  void (*reset)(void*);
  int (*set)(void*, int, ...);
  int (*perform)(void*);
  int (*info)(void*, int, ...);
  List* (*append)(List*, const char*);
  void (*free_list)(List*);
  const char* (*text_of_error)(int);

  Library() {
    void* file = nullptr;
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
      if (!file) file = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!file)
      throw UserError(std::string("a server over HTTP needs libcurl (Debian: libcurl4): ") + dlerror());
    const auto find = [file](auto& symbol, const char* name) { find_symbol(file, symbol, name); };
    find(make, "curl_easy_init");
    find(free, "curl_easy_cleanup");
    find(reset, "curl_easy_reset");
    find(set, "curl_easy_setopt");
    find(perform, "curl_easy_perform");
    find(info, "curl_easy_getinfo");
    find(append, "curl_slist_append");
    find(free_list, "curl_slist_free_all");
    find(text_of_error, "curl_easy_strerror");
  }
};

const Library& library() {
  static const Library library;
  return library;
}

}  // namespace curl

constexpr long kConnectMs = 5'000, kAllMs = 30'000;
constexpr std::size_t kMostBody = 64 << 20;  // bytes

std::size_t receive(const char* bytes, std::size_t size, std::size_t count, std::string* body) {
  if (body->size() + size * count > kMostBody) return 0;  // libcurl ends the request
  body->append(bytes, size * count);
  return size * count;
}

int is_cancelled(const std::atomic<bool>* cancelled, int64_t, int64_t, int64_t, int64_t) {
  return *cancelled;
}

class CurlClient final : public HttpClient {
 public:
  explicit CurlClient(HttpSettings settings)
      : curl_(curl::library()), settings_(std::move(settings)), handle_(curl_.make(), curl_.free) {
    TUTTI_ASSERT(handle_, "curl_easy_init");
  }

  HttpAnswer send(const HttpRequest& request) override {
    const NoBrokenPipeSignal no_signal;  // TLS may write to a closed connection
    HttpAnswer answer;
    curl_.reset(handle_.get());
    const List headers = headers_of(request);
    set_request(request, answer.body);
    set(curl::kHeaders, headers.get());
    set(curl::kNoSignal, 1L);
    set(curl::kConnectTimeoutMs, kConnectMs);
    set(curl::kTimeoutMs, kAllMs);
    set(curl::kProtocols, curl::kHttpAndHttps);
    set(curl::kNoProgress, 0L);
    set(curl::kProgressFunction, &is_cancelled);
    set(curl::kProgressData, &cancelled_);
    set(curl::kVerifyPeer, settings_.verifies ? 1L : 0L);
    set(curl::kVerifyHost, settings_.verifies ? 2L : 0L);
    if (!settings_.certificates.empty()) set(curl::kCertificates, settings_.certificates.c_str());
    const int error = curl_.perform(handle_.get());
    long status = 0;
    curl_.info(handle_.get(), curl::kResponseCode, &status);
    if (error != 0) return {0, "", curl_.text_of_error(error)};
    answer.status = static_cast<int>(status);
    return answer;
  }

  void cancel() override { cancelled_ = true; }

 private:
  using List = std::unique_ptr<curl::List, void (*)(curl::List*)>;

  template <class Value>
  void set(curl::Option option, Value value) {
    curl_.set(handle_.get(), option, value);
  }

  void set_request(const HttpRequest& request, std::string& body) {
    set(curl::kUrl, request.url.c_str());
    if (request.method != "GET") {
      set(curl::kPostFields, request.body.data());
      set(curl::kPostFieldSize, static_cast<int64_t>(request.body.size()));
    }
    set(curl::kCustomRequest, request.method.c_str());
    set(curl::kWriteFunction, &receive);
    set(curl::kWriteData, &body);
  }

  // "Expect:" sends large bodies without asking the server before.
  List headers_of(const HttpRequest& request) const {
    curl::List* list = curl_.append(nullptr, "Expect:");
    list = curl_.append(list, ("Content-Type: " + request.content_type).c_str());
    for (const std::string& header : settings_.headers) list = curl_.append(list, header.c_str());
    return {list, curl_.free_list};
  }

  const curl::Library& curl_;
  HttpSettings settings_;
  std::unique_ptr<void, void (*)(void*)> handle_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace

std::unique_ptr<HttpClient> open_http(const HttpSettings& settings) {
  return std::make_unique<CurlClient>(settings);
}

std::string url_part(const std::string& text) {
  std::string part;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    part += std::isalnum(byte) || std::string_view("-._~").find(c) != std::string_view::npos
                ? std::string(1, c)
                : formatted("%%%02X", byte);
  }
  return part;
}

}  // namespace tutti
