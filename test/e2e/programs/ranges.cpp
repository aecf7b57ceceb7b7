// An extension that makes its own ranges and observers, in every way that PyTorch's headers offer. Loaded by ctypes; knows
// nothing of tprof. What its observers see, and what its objects say of themselves, it writes to the file it is given.
#include <ATen/record_function.h>

#include <cstdio>
#include <memory>
#include <thread>
#include <unordered_map>

namespace {

FILE* out;

struct Depth : at::ObserverContext {
  int calls = 0;
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& range) {
  fprintf(out, "begin %s scope %d sequence %ld inputs %zu async %d\n", range.name(), int(range.scope()), long(range.seqNr()),
          range.inputs().size(), int(range.isAsync()));
  auto context = std::make_unique<Depth>();
  context->calls = 1;
  return context;
}

void end(const at::RecordFunction& range, at::ObserverContext* context) {
  fprintf(out, "end %s context %d outputs %zu\n", range.name(), static_cast<Depth*>(context)->calls, range.outputs().size());
}

at::RecordFunctionCallback callback(double probability, bool inputs) {
  return at::RecordFunctionCallback(begin, end).samplingProb(probability).needsInputs(inputs).needsOutputs(inputs);
}

struct Derived : at::RecordFunction {
  using at::RecordFunction::RecordFunction;
  std::string more = "a member behind those of the base, long enough to be allocated";
};

void make_ranges() {
  { RECORD_FUNCTION("ext::function", std::vector<c10::IValue>{}); }
  { RECORD_USER_SCOPE("ext user scope with a name that is longer than a short string"); }
#ifdef RECORD_USER_SCOPE_WITH_KWARGS_ONLY // not in PyTorch 2.4
  {
    std::unordered_map<std::string, c10::IValue> words{{"a word", 1}, {"another", 2.5}};
    RECORD_USER_SCOPE_WITH_KWARGS_ONLY("ext keywords", &words);
  }
  {
    std::unordered_map<std::string, c10::IValue> words{{"a word", std::string(100, 'x')}};
    at::RecordFunction range(at::RecordScope::FUNCTION);
    if (range.isActive())
      range.before("ext::keywords", &words, 5);
    range.setOutputs(std::vector<c10::IValue>(7, c10::IValue(std::string(100, 'y'))));
  }
#else
  { RECORD_USER_SCOPE("ext keywords"); }
  {
    at::RecordFunction range(at::RecordScope::FUNCTION);
    if (range.isActive())
      range.before("ext::keywords", 5);
  }
#endif
  {
    auto heap = std::make_unique<at::RecordFunction>(at::RecordScope::FUNCTION);
    if (heap->isActive())
      heap->before(std::string("ext::heap") + std::string(100, '.'), 41);
  }
  {
    std::unique_ptr<at::RecordFunction> base = std::make_unique<Derived>(at::RecordScope::CUSTOM_CLASS);
    if (base->isActive())
      base->before("ext::derived");
  }
  {
    auto shared = std::make_shared<at::RecordFunction>(at::RecordScope::FUNCTION);
    if (shared->isActive()) {
      shared->_setAsync();
      shared->before("ext::async");
    }
    std::thread([shared] { shared->end(); }).join();
  }
  {
    at::RecordFunction backward(at::RecordScope::BACKWARD_FUNCTION);
    if (backward.isActive()) {
      backward.setForwardThreadId(at::RecordFunction::currentThreadId());
      backward.before("ExtBackward0", 42);
    }
    backward.end();
    backward.end();
  }
  for (int scope = 0; scope < int(at::RecordScope::NUM_SCOPES); scope++) {
    auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope(scope));
    if (callbacks.has_value()) {
      at::RecordFunction range(std::move(*callbacks));
      range.before("ext::scope" + std::to_string(scope));
    }
  }
  { at::RecordFunction unnamed(at::RecordScope::FUNCTION); }
  try {
    RECORD_FUNCTION("ext::throws", std::vector<c10::IValue>{});
    throw std::runtime_error("passes through");
  } catch (const std::runtime_error&) {
  }
  {
    at::RecordFunctionGuard off(false);
    RECORD_FUNCTION("ext::unseen", std::vector<c10::IValue>{});
  }
}

} // namespace

extern "C" void ranges(const char* file) {
  out = fopen(file, "a");
  at::set_record_function_seed_for_testing(3);
  make_ranges(); // before there are observers
  auto all = at::addGlobalCallback(callback(1.0, true));
  make_ranges();
  at::removeCallback(all);
  auto some = at::addGlobalCallback(callback(0.3, false));
  for (int i = 0; i < 20; i++)
    make_ranges();
  at::removeCallback(some);
  auto here = at::addThreadLocalCallback(callback(1.0, false).scopes({at::RecordScope::USER_SCOPE}));
  make_ranges();
  std::thread(make_ranges).join();
  at::removeCallback(here);
  make_ranges(); // and after
  fclose(out);
}
