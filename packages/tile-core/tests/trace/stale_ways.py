"""Ways by which a value reaches a kernel, for `test_stale.py`: rows of text of Python."""

# Name: statements before, expression of the value (2), statements that make it 5 in place, and by binding again, that
# bind an equal value, and that change something else.
VALUES = {
    "global": ("S = 2", "S", "", "S = 5", "S = int('2')", "Q = 5"),
    "large global": ("S = 2.5", "int(S)", "", "S = 5.5", "S = float('2.5')", "Q = 5"),
    "module": ("cfg = module(S=2)", "cfg.S", "cfg.S = 5", "cfg = module(S=5)", "cfg.S = int('2')", "cfg.Q = 5"),
    "module of a module": (
        "m = module(cfg=module(S=2))", "m.cfg.S", "m.cfg.S = 5", "m.cfg = module(S=5)", "m.cfg = module(S=2)",
        "m.cfg.Q = 5",
    ),
    "class": ("class C: S = 2", "C.S", "C.S = 5", "class C: S = 5", "C.S = int('2')", "C.Q = 5"),
    "base class": ("class B: S = 2\nclass C(B): pass", "C.S", "B.S = 5", "C.S = 5", "C.S = int('2')", "C.Q = 5"),
    "class of a class": (
        "class C:\n class D: S = 2", "C.D.S", "C.D.S = 5", "class D: S = 5\nC.D = D", "C.D.S = int('2')", "C.D.Q = 5",
    ),
    "metaclass": (
        "class M(type): S = 2\nclass C(metaclass=M): pass", "C.S", "M.S = 5", "C.S = 5", "M.S = int('2')", "M.Q = 5",
    ),
    "class method": (
        "class C:\n S = 2\n @classmethod\n def s(cls): return cls.S", "C.s()", "C.S = 5",
        "C.s = staticmethod(lambda: 5)", "C.S = int('2')", "C.Q = 5",
    ),
    "static method": (
        "class C:\n @staticmethod\n def s(): return 2", "C.s()", "C.s.__code__ = (lambda: 5).__code__",
        "C.s = staticmethod(lambda: 5)", "C.s = staticmethod(lambda: 2)", "C.Q = 5",
    ),
    "object": ("x = Plain(2)", "x.S", "x.S = 5", "x = Plain(5)", "x.S = int('2')", "x.Q = 5"),
    "dictionary of an object": (
        "x = Plain(2)", "x.S", "x.__dict__ = {'S': 5}", "x = Plain(5)", "x.__dict__ = {'S': 2}", "x.Q = 5",
    ),
    "class of an object": ("class C: S = 2\nx = C()", "x.S", "C.S = 5", "x.S = 5", "x.S = int('2')", "C.Q = 5"),
    "slot": ("x = Slots(2)", "x.S", "x.S = 5", "x = Slots(5)", "x.S = int('2')", "x.other = 5"),
    "property": (
        "class C(Plain):\n @property\n def s(self): return self.S\nx = C(2)", "x.s", "x.S = 5",
        "C.s = property(lambda self: 5)", "x.S = int('2')", "x.Q = 5",
    ),
    "cached property": (
        "class C(Plain):\n @functools.cached_property\n def s(self): return self.S\nx = C(2)", "x.s", "x.s = 5",
        "x = C(5)", "x.S = int('2')", "x.Q = 5",
    ),
    "method": (
        "class C(Plain):\n def s(self): return self.S\nx = C(2)", "x.s()", "x.S = 5", "C.s = lambda self: 5",
        "x.S = int('2')", "x.Q = 5",
    ),
    "bound method": (
        "class C(Plain):\n def get(self): return self.S\nx = C(2)\ns = x.get", "s()", "x.S = 5", "s = C(5).get",
        "s = C(2).get", "x.Q = 5",
    ),
    "object that is called": (
        "class C(Plain):\n def __call__(self): return self.S\nx = C(2)", "x()", "x.S = 5", "x = C(5)", "x = C(2)",
        "x.Q = 5",
    ),
    "operator": (
        "class C(Plain):\n def __getitem__(self, i): return self.S + i\nx = C(2)", "x[0]", "x.S = 5",
        "C.__getitem__ = lambda self, i: 5", "x.S = int('2')", "x.Q = 5",
    ),
    "__getattr__": (
        "class C:\n def __init__(self): self.d = {'S': 2}\n def __getattr__(self, n): return self.d[n]\nx = C()", "x.S",
        "x.d['S'] = 5", "C.__getattr__ = lambda self, n: 5", "x.d = {'S': 2}", "x.Q = 5",
    ),
    "new object": ("class C: S = 2", "C().S", "C.S = 5", "class C: S = 5", "class C: S = 2", "C.Q = 5"),
    "dataclass": ("x = Data(2)", "x.S", "x.S = 5", "x = Data(5)", "x = Data(2)", "x.other = 5"),
    "dataclass as a dict": (
        "x = Data(2)", "dataclasses.asdict(x)['S']", "x.S = 5", "x = Data(5)", "x = Data(2)", "x.other = 5",
    ),
    "enum": (
        "class E(enum.Enum): A = 2", "E.A.value", "E.A._value_ = 5", "class E(enum.Enum): A = 5",
        "class E(enum.Enum): A = 2", "Q = 5",
    ),
    "member of an enum": (
        "class E(enum.Enum):\n A = 1\nE.A.S = 2", "E.A.S", "E.A.S = 5", "class E(enum.Enum): A = 1\nE.A.S = 5",
        "E.A.S = int('2')", "E.A.Q = 5",
    ),
    "members of an enum": (
        "class E(enum.Enum):\n A = 2", "sum(e.value for e in E)", "E.A._value_ = 5", "class E(enum.Enum): A = 5",
        "class E(enum.Enum): A = 2", "Q = 5",
    ),
    "namespace": (
        "x = types.SimpleNamespace(S=2)", "x.S", "x.S = 5", "x = types.SimpleNamespace(S=5)", "x.S = int('2')",
        "x.Q = 5",
    ),
    "list": ("x = [1, 2]", "x[1]", "x[1] = 5", "x = [1, 5]", "x = [1, 2]", "x.append(3)"),
    "length": ("x = [1, 2]", "len(x)", "x.extend([3, 4, 5])", "x = [1] * 5", "x = [1, 2]", "x[0] = 3"),
    "deque": (
        "x = collections.deque([2])", "x[0]", "x[0] = 5", "x = collections.deque([5])", "x = collections.deque([2])",
        "x.append(3)",
    ),
    "dict": ("x = {'S': 2}", "x['S']", "x['S'] = 5", "x = {'S': 5}", "x = {'S': 2}", "x['Q'] = 3"),
    "keys": ("x = {2: 0}", "max(x)", "x[5] = 0", "x = {5: 0}", "x = {2: 0}", "x[2] = 1"),
    "read-only mapping": (
        "d = {'S': 2}\nx = types.MappingProxyType(d)", "x['S']", "d['S'] = 5", "x = types.MappingProxyType({'S': 5})",
        "x = types.MappingProxyType({'S': 2})", "d['Q'] = 3",
    ),
    "set": ("x = {2}", "max(x)", "x.add(5)", "x = {5}", "x = {2}", "x.add(1)"),
    "tuple": ("x = (1, 2)", "x[1]", "", "x = (1, 5)", "x = tuple([1, int('2')])", "Q = 5"),
    "named tuple": ("N = collections.namedtuple('N', 'S')\nx = N(2)", "x.S", "", "x = N(5)", "x = N(2)", "Q = 5"),
    "nested": (
        "m = module(cfgs=[{'a': (Slots(Plain(2)),)}])", "m.cfgs[0]['a'][0].S.S", "m.cfgs[0]['a'][0].S.S = 5",
        "m.cfgs[0] = {'a': (Slots(Plain(5)),)}", "m.cfgs[0]['a'][0].S = Plain(2)", "m.cfgs[0]['a'][0].S.Q = 5",
    ),
    "subclass of dict": (
        "class D(dict):\n __getattr__ = dict.__getitem__\nx = D(S=2)", "x.S", "x['S'] = 5", "x = D(S=5)", "x = D(S=2)",
        "x['Q'] = 5",
    ),
    "attribute of a list": (
        "class L(list): pass\nx = L()\nx.S = 2", "x.S", "x.S = 5", "x = L()\nx.S = 5", "x.S = int('2')", "x.Q = 5",
    ),
    "getattr": (
        "cfg = module(S=2)", "getattr(cfg, 'S')", "cfg.S = 5", "cfg = module(S=5)", "cfg.S = int('2')", "cfg.Q = 5",
    ),
    "computed name": (
        "x = Plain(2)\nname = chr(83)", "getattr(x, name)", "x.S = 5", "x.R = 5\nname = 'R'", "x.S = int('2')",
        "x.Q = 5",
    ),
    "vars": ("x = Plain(2)", "vars(x)['S']", "x.S = 5", "x = Plain(5)", "x.S = int('2')", "x.Q = 5"),
    "globals": ("S = 2", "globals()['S']", "", "S = 5", "S = int('2')", "Q = 5"),
    "eval": ("S = 2", "eval('S')", "", "S = 5", "S = int('2')", "Q = 5"),
    "hasattr": (
        "x = Plain(2)\ny = Plain(5)\ny.fast = 1", "5 if hasattr(x, 'fast') else 2", "x.fast = True", "x = y",
        "x = Plain(2)", "x.Q = 5",
    ),
    "builtin": ("", "abs(-2)", "", "abs = lambda x: 5", "abs = abs", "Q = 5"),
    "helper": (
        "def s(): return 2", "s()", "s.__code__ = (lambda: 5).__code__", "def s(): return 5", "def s(): return 2",
        "Q = 5",
    ),
    "global of a helper": (
        "h = module('K = 2\\ndef s(): return K')", "h.s()", "h.K = 5", "h.s = lambda: 5", "h.K = int('2')", "h.Q = 5",
    ),
    "global of an imported helper": (
        "h = module('K = 2\\ndef s(): return K')\ns = h.s", "s()", "h.K = 5", "s = lambda: 5", "h.K = int('2')",
        "h.Q = 5",
    ),
    "helper of a helper": (
        "g = module('K = 2\\ndef s(): return K')\nh = module('def s(): return g.s()', g=g)", "h.s()", "g.K = 5",
        "h.g = module(s=lambda: 5)", "g.K = int('2')", "g.Q = 5",
    ),
    "object given to a helper": (
        "h = module('def s(x): return x.S')\nx = Plain(2)", "h.s(x)", "x.S = 5", "x = Plain(5)", "x = Plain(2)",
        "x.Q = 5",
    ),
    "module given to a helper": (
        "h = module('def s(x): return x.S')\nx = module(S=2)", "h.s(x)", "x.S = 5", "x = module(S=5)", "x.S = int('2')",
        "x.Q = 5",
    ),
    "closure of a helper": (
        "def make(x):\n def s(): return x\n def put(y):\n  nonlocal x\n  x = y\n return s, put\ns, put = make(2)",
        "s()", "put(5)", "s, put = make(5)", "put(int('2'))", "Q = 5",
    ),
    "default of a helper": (
        "def s(x=2): return x", "s()", "s.__defaults__ = (5,)", "def s(x=5): return x", "s.__defaults__ = (int('2'),)",
        "Q = 5",
    ),
    "keyword default of a helper": (
        "def s(*, x=2): return x", "s()", "s.__kwdefaults__['x'] = 5", "s.__kwdefaults__ = {'x': 5}",
        "s.__kwdefaults__ = {'x': 2}", "Q = 5",
    ),
    "default that is a list": (
        "def s(x=[2]): return x[0]", "s()", "s.__defaults__[0][0] = 5", "s.__defaults__ = ([5],)",
        "s.__defaults__ = ([2],)", "s.__defaults__[0].append(1)",
    ),
    "attribute of a helper": (
        "def s(): pass\ns.S = 2", "s.S", "s.S = 5", "def s(): pass\ns.S = 5", "s.S = int('2')", "s.Q = 5",
    ),
    "partial": (
        "x = [2]\ndef f(x): return x[0]\ns = functools.partial(f, x)", "s()", "x[0] = 5",
        "s = functools.partial(f, [5])", "s = functools.partial(f, [2])", "x.append(1)",
    ),
    "wrapped helper": (
        "x = Plain(2)\ndef twice(f):\n @functools.wraps(f)\n def g(): return f() * 1\n return g\n@twice\n"
        "def s(): return x.S", "s()", "x.S = 5", "s = twice(lambda: 5)", "x.S = int('2')", "x.Q = 5",
    ),
    "cached helper": (
        "x = Plain(2)\n@functools.lru_cache\ndef s(i): return i\n", "s(x.S)", "x.S = 5", "s = lambda i: 5",
        "x.S = int('2')", "x.Q = 5",
    ),
    "table of modules": (
        "import sys\nh = module(S=2)", "sys.modules[h.__name__].S", "h.S = 5", "h = module(S=5)", "h.S = int('2')",
        "h.Q = 5",
    ),
    "environment": (
        "os.environ['STALE_S'] = '2'", "int(os.environ['STALE_S'])", "os.environ['STALE_S'] = '5'", "", "",
        "os.environ['STALE_Q'] = '5'",
    ),
    "getenv": (
        "os.environ['STALE_S'] = '2'", "int(os.getenv('STALE_S'))", "os.environ['STALE_S'] = '5'", "", "",
        "os.environ['STALE_Q'] = '5'",
    ),
    "scalar of NumPy": ("S = np.int32(2)", "int(S)", "", "S = np.int32(5)", "S = np.int32(2)", "Q = 5"),
    "array": (
        "x = np.array([1, 2])", "int(x[1])", "x[1] = 5", "x = np.array([1, 5])", "x = np.array([1, 2])", "x[0] = 3",
    ),
    "array of objects": (
        "x = np.array([Plain(2)], object)", "x[0].S", "x[0].S = 5", "x = np.array([Plain(5)], object)",
        "x[0] = Plain(2)", "x[0].Q = 3",
    ),
    "bytes": ("x = bytearray([2])", "x[0]", "x[0] = 5", "x = bytearray([5])", "x = bytearray([2])", "x.append(1)"),
}  # fmt: skip

# The same for arguments of the function, of which `x` is the one that every call gives.
ARGUMENTS = {
    "scalar": ("x = 2", "x", "", "x = 5", "x = int('2')"),
    "module": ("x = module(S=2)", "x.S", "x.S = 5", "x = module(S=5)", "x.S = int('2')"),
    "class": ("class x: S = 2", "x.S", "x.S = 5", "class x: S = 5", "x.S = int('2')"),
    "object": ("x = Plain(2)", "x.S", "x.S = 5", "x = Plain(5)", "x = Plain(2)"),
    "class of an object": ("class C: S = 2\nx = C()", "x.S", "C.S = 5", "x.S = 5", "x = C()"),
    "slot": ("x = Slots(2)", "x.S", "x.S = 5", "x = Slots(5)", "x = Slots(2)"),
    "object equal to others": (
        "class C(Plain):\n def __eq__(self, y): return True\n def __hash__(self): return 1\nx = C(2)", "x.S", "x.S = 5",
        "x = C(5)", "x = C(2)",
    ),
    "dataclass": ("x = Data(2)", "x.S", "x.S = 5", "x = Data(5)", "x = Data(2)"),
    "member of an enum": (
        "class E(enum.Enum):\n A, B = 2, 5\nx = E.A", "x.value", "x._value_ = 5", "x = E.B", "x = E(2)",
    ),
    "list of objects": ("x = [Slots(2)]", "x[0].S", "x[0].S = 5", "x = [Slots(5)]", "x = [Slots(2)]"),
    "dict": ("x = {'S': [2]}", "x['S'][0]", "x['S'][0] = 5", "x = {'S': [5]}", "x = {'S': [2]}"),
    "function": ("K = Plain(2)\nx = lambda: K.S", "x()", "K.S = 5", "x = lambda: 5", "K.S = int('2')"),
    "wrapper": (
        "def f(): pass\ndef make(s):\n g = lambda: s\n return functools.update_wrapper(g, f)\nx = make(2)", "x()",
        "x.__code__ = (lambda s: lambda: s + 3)(0).__code__", "x = make(5)", "x = make(2)",
    ),
    "function of another module": (
        "h = module('K = 2\\ndef s(): return K')\nx = h.s", "x()", "h.K = 5", "x = lambda: 5", "h.K = int('2')",
    ),
    "array": ("x = [np.array([2])]", "int(x[0][0])", "x[0][0] = 5", "x = [np.array([5])]", "x = [np.array([2])]"),
}  # fmt: skip
