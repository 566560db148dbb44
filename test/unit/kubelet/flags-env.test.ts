import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Arg } from '../../../src/base/arg.ts';
import { AppError } from '../../../src/base/errors.ts';
import type { Taint } from '../../../src/kube/taint.ts';
import { formatTaint } from '../../../src/kube/taint.ts';
import { buildKubeletFlags, type KubeletFlagsInput, readFlagsEnv, renderFlagsEnv } from '../../../src/kubelet/flags/flags-env.ts';
import { fixture } from '../../support/fixture.ts';
import { numberOfRuns } from '../../support/thorough.ts';

const CONTAINERD = 'unix:///var/run/containerd/containerd.sock';

function args(...pairs: readonly (readonly [name: string, value: string])[]): readonly Arg[] {
  return pairs.map(([name, value]) => ({ name, value }));
}

function input(change: Partial<KubeletFlagsInput> = {}): KubeletFlagsInput {
  const base = {
    hostname: 'vm',
    nodeName: 'cp-1',
    extraArgs: [],
    criSocket: CONTAINERD,
    registerWithTaints: [],
    kubeletMinor: 36,
    nodeLocalCRISocket: true,
  };
  return { ...base, ...change };
}

const GPU: Taint = { key: 'dedicated', value: 'gpu', effect: 'NoSchedule' };

describe('kubeadm-flags.env', () => {
  /** Written by kubeadm 1.36.2 for the same input on a host with another name. */
  it.each([
    ['init, defaults', input(), '--hostname-override=cp-1'],
    [
      'init, node-ip, labels and verbosity in the user’s order',
      input({ extraArgs: args(['node-ip', '192.168.56.10'], ['node-labels', 'role=edge,zone=a'], ['v', '4']) }),
      '--hostname-override=cp-1 --node-ip=192.168.56.10 --node-labels=role=edge,zone=a --v=4',
    ],
    [
      'init, dual-stack',
      input({ extraArgs: args(['node-ip', '192.168.56.10,fd00:56::10']) }),
      '--hostname-override=cp-1 --node-ip=192.168.56.10,fd00:56::10',
    ],
    [
      'join, a worker with a taint',
      input({ nodeName: 'worker-7', registerWithTaints: [GPU], extraArgs: args(['node-labels', 'pool=gpu']) }),
      '--hostname-override=worker-7 --register-with-taints=dedicated=gpu:NoSchedule --node-labels=pool=gpu',
    ],
    [
      'join, a worker with patches',
      input({ nodeName: 'worker-8', extraArgs: args(['node-ip', '10.1.2.3']) }),
      '--hostname-override=worker-8 --node-ip=10.1.2.3',
    ],
    ['no flags', input({ nodeName: 'vm' }), ''],
  ])('%s', (_, given, expected) => {
    const text = renderFlagsEnv(buildKubeletFlags(given));
    expect(text).toBe(`KUBELET_KUBEADM_ARGS="${expected}"\n`);
    expect(readFlagsEnv(text)).toEqual(expected === '' ? [] : expected.split(' '));
  });
});

describe('buildKubeletFlags', () => {
  it.each([
    [
      'hostname-override of the user replaces the node name',
      input({ extraArgs: args(['hostname-override', 'other']) }),
      [['hostname-override', 'other']],
    ],
    [
      'the last of several is used, all are kept',
      input({ nodeName: 'vm', extraArgs: args(['hostname-override', 'a'], ['hostname-override', 'vm']) }),
      [
        ['hostname-override', 'a'],
        ['hostname-override', 'vm'],
      ],
    ],
    ['an empty hostname-override is kept', input({ extraArgs: args(['hostname-override', '']) }), [['hostname-override', '']]],
    [
      'upper case in hostname-override is kept',
      input({ extraArgs: args(['hostname-override', 'OVERRIDE-NAME']) }),
      [['hostname-override', 'OVERRIDE-NAME']],
    ],
    ['an unknown host name', input({ hostname: null, nodeName: 'vm' }), [['hostname-override', 'vm']]],
    [
      'generated flags sorted, the user’s flags in their order',
      input({ registerWithTaints: [GPU], extraArgs: args(['z', '1'], ['a', '2']) }),
      [
        ['hostname-override', 'cp-1'],
        ['register-with-taints', 'dedicated=gpu:NoSchedule'],
        ['z', '1'],
        ['a', '2'],
      ],
    ],
    [
      'a flag of the user replaces a generated one',
      input({ registerWithTaints: [GPU], extraArgs: args(['register-with-taints', '']) }),
      [
        ['hostname-override', 'cp-1'],
        ['register-with-taints', ''],
      ],
    ],
    [
      'duplicates of the user are kept',
      input({ nodeName: 'vm', extraArgs: args(['tls-sni', 'a'], ['tls-sni', 'a/b']) }),
      [
        ['tls-sni', 'a'],
        ['tls-sni', 'a/b'],
      ],
    ],
    ['kubelet 1.27 reads the socket from its configuration', input({ nodeName: 'vm', kubeletMinor: 27 }), []],
    ['kubelet 1.26 needs it as a flag', input({ nodeName: 'vm', kubeletMinor: 26 }), [['container-runtime-endpoint', CONTAINERD]]],
    ['kubelet 1.24 has no dockershim', input({ nodeName: 'vm', kubeletMinor: 24 }), [['container-runtime-endpoint', CONTAINERD]]],
    [
      'kubelet 1.23 requires --container-runtime',
      input({ nodeName: 'vm', kubeletMinor: 23 }),
      [
        ['container-runtime', 'remote'],
        ['container-runtime-endpoint', CONTAINERD],
      ],
    ],
    [
      'the user’s endpoint also wins for kubelet 1.26',
      input({ nodeName: 'vm', kubeletMinor: 26, extraArgs: args(['container-runtime-endpoint', 'unix:///x']) }),
      [['container-runtime-endpoint', 'unix:///x']],
    ],
    [
      'several taints, with and without a value',
      input({
        nodeName: 'vm',
        registerWithTaints: [
          { key: 'foo', value: 'bar', effect: 'NoExecute' },
          { key: 'key', effect: 'PreferNoSchedule' },
        ],
      }),
      [['register-with-taints', 'foo=bar:NoExecute,key:PreferNoSchedule']],
    ],
  ] as const)('%s', (_, given, expected) => {
    expect(buildKubeletFlags(given)).toEqual(args(...expected));
  });

  it('does not change its input', () => {
    const extraArgs = Object.freeze(args(['b', '1'], ['a', '2']));
    expect(() => buildKubeletFlags(input({ extraArgs }))).not.toThrow();
  });
});

describe('formatTaint', () => {
  it.each([
    [GPU, 'dedicated=gpu:NoSchedule'],
    [{ key: 'a/b', effect: 'NoExecute' }, 'a/b:NoExecute'],
    [{ key: 'a', value: '', effect: 'NoExecute' }, 'a:NoExecute'],
  ] satisfies [Taint, string][])('%j', (taint, expected) => {
    expect(formatTaint(taint)).toBe(expected);
  });
});

describe('renderFlagsEnv', () => {
  it.each([
    ['a quoted blank', 'x="q r"', 'KUBELET_KUBEADM_ARGS="--f=x=\\"q r\\""\n', '--f=x=q r'],
    ['single quotes', "x='q r'", 'KUBELET_KUBEADM_ARGS="--f=x=\'q r\'"\n', '--f=x=q r'],
    ['two backslashes', 'a\\\\b', 'KUBELET_KUBEADM_ARGS="--f=a\\\\\\\\b"\n', '--f=a\\b'],
    ['dollar, per cent, backquote', 'a$HOME%h`id`', 'KUBELET_KUBEADM_ARGS="--f=a$HOME%h`id`"\n', '--f=a$HOME%h`id`'],
    ['Unicode', 'zoë_😀', 'KUBELET_KUBEADM_ARGS="--f=zoë_😀"\n', '--f=zoë_😀'],
    ['nothing', '', 'KUBELET_KUBEADM_ARGS="--f="\n', '--f='],
  ])('writes %s like kubeadm', (_, value, text, word) => {
    const rendered = renderFlagsEnv(args(['f', value]));
    expect(rendered).toBe(text);
    expect(readFlagsEnv(rendered)).toEqual([word]);
  });

  it.each([
    ['a space outside quotes', 'a b'],
    ['a space at the end', 'a '],
    ['a single space', ' '],
    ['an open double quote', '"a'],
    ['an open single quote', "it's"],
    ['an open quote after a space', 'a "'],
    ['a tab', 'a\tb'],
    ['a quoted tab', '"a\tb"'],
    ['a newline', 'a\nb'],
    ['a carriage return', 'a\rb'],
    ['a NUL', 'a\0b'],
    ['a bell', 'a\u0007b'],
    ['a no-break space, which Go writes as an escape', 'a\u00a0b'],
    ['a zero-width space', 'a\u200bb'],
    ['half of a surrogate pair', 'a\ud800'],
    ['an unquoted backslash', 'C:\\x'],
    ['a backslash at the end', 'a\\'],
    ['a backslash before a letter, inside quotes', '"a\\b"'],
  ])('refuses %s', (_, value) => {
    const render = (): string => renderFlagsEnv(args(['v', '2'], ['node-labels', value]));
    expect(render).toThrow(AppError);
    expect(render).toThrow(/kubelet flag --node-labels: .*\[FLAG_NOT_ENCODABLE\]/);
  });

  it.each([['a b'], ['"a'], ['a\tb']])('refuses the name %j', (name) => {
    expect(() => renderFlagsEnv(args([name, '1']))).toThrow(/FLAG_NOT_ENCODABLE/);
  });

  it('exits with code 2 before any change', () => {
    try {
      renderFlagsEnv(args(['a', 'b c']));
      expect.unreachable();
    } catch (error) {
      expect((error as AppError).exitCode).toBe(2);
    }
  });
});

interface Recorded {
  readonly values: readonly [x: string, y: string];
  readonly argv: readonly string[];
}
const RECORDED = JSON.parse(fixture(import.meta.url, 'fixtures/flags-env-systemd-252.json')) as readonly Recorded[];

describe('arguments recorded with systemd 252', () => {
  it.each(RECORDED.map(({ values, argv }) => [JSON.stringify(values), values, argv] as const))('%s', (_, [x, y], argv) => {
    expect(readFlagsEnv(renderFlagsEnv(args(['x', x], ['y', y])))).toEqual(argv);
  });
});

describe('renderFlagsEnv and readFlagsEnv', () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/);
  const awkward = fc.string({ unit: fc.constantFrom(...'ab"\'\\ \t\n$`#;=%é\u00a0'.split('')), maxLength: 8 });
  const flags = fc.array(fc.record({ name, value: fc.oneof(awkward, fc.string({ unit: 'binary' })) }), { maxLength: 4 });

  it('produce one argument per flag, with its name, for every accepted value', () => {
    fc.assert(
      fc.property(flags, (list) => {
        const text = renderOrNull(list);
        fc.pre(text !== null);
        const words = readFlagsEnv(text);
        expect(words).toHaveLength(list.length);
        words.forEach((word, i) => {
          expect(word.startsWith(`--${list[i]?.name}=`)).toBe(true);
        });
      }),
      { numRuns: numberOfRuns(300) },
    );
  });

  it('produce the same argument for a flag alone and among others', () => {
    fc.assert(
      fc.property(flags, (list) => {
        const text = renderOrNull(list);
        fc.pre(text !== null);
        expect(readFlagsEnv(text)).toEqual(list.flatMap((flag) => readFlagsEnv(renderFlagsEnv([flag]))));
      }),
    );
  });

  it('accept every printable value without quotes, spaces and backslashes, and return it unchanged', () => {
    const plain = fc.string({ unit: 'grapheme' }).filter((text) => /^[\p{L}\p{N}\p{P}\p{S}]*$/u.test(text) && !/["'\\]/.test(text));
    fc.assert(
      fc.property(fc.array(fc.record({ name, value: plain })), (list) => {
        expect(readFlagsEnv(renderFlagsEnv(list))).toEqual(list.map((flag) => `--${flag.name}=${flag.value}`));
      }),
    );
  });
});

function renderOrNull(flags: readonly Arg[]): string | null {
  try {
    return renderFlagsEnv(flags);
  } catch {
    return null;
  }
}

describe('readFlagsEnv', () => {
  /** kubeadm's own reader glues `--foo bar` together and loses quotes; this one reads what systemd passes on. */
  it.each([
    ['one flag', `KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=${CONTAINERD}"`, [`--container-runtime-endpoint=${CONTAINERD}`]],
    ['no flags', 'KUBELET_KUBEADM_ARGS=""', []],
    ['a comment only', '# This is a comment, no args here', []],
    ['an empty file', '', []],
    ['a flag and its value apart', 'KUBELET_KUBEADM_ARGS="--foo bar --baz=qux"', ['--foo', 'bar', '--baz=qux']],
    ['without the variable', '"--foo bar"', []],
    ['without quotes', 'KUBELET_KUBEADM_ARGS=--a=b --c=d\n', ['--a=b', '--c=d']],
    ['with another variable', 'X=1\nKUBELET_KUBEADM_ARGS="--a=b"\n', ['--a=b']],
  ])('%s', (_, text, words) => {
    expect(readFlagsEnv(text)).toEqual(words);
  });
});
