import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'vitest';
import { parseGoDuration } from '../../src/base/text/go-duration.ts';
import { parseIp } from '../../src/base/text/ip.ts';
import { maskSecrets } from '../../src/base/text/mask.ts';
import { escapeUnprintable, printable } from '../../src/base/text/printable.ts';
import { parseQuantity } from '../../src/base/text/quantity.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { renderTable } from '../../src/base/text/table.ts';
import { inlineValue } from '../../src/codec/inline-value.ts';
import { parseSource } from '../../src/codec/source.ts';
import { encodeYaml } from '../../src/codec/yaml-encode.ts';
import { resolvePlainScalar } from '../../src/codec/yaml-scalar.ts';
import { parseRecord } from '../../src/host/commit/record.ts';
import { parseFibTrie, parseIfInet6, parseOwnAddresses } from '../../src/host/facts/addresses.ts';
import { defaultDevice4, defaultDevice6 } from '../../src/host/facts/default-route.ts';
import { parseProcNetTcp } from '../../src/host/facts/listening-ports.ts';
import { parseOsRelease } from '../../src/host/facts/operating-system.ts';
import { parseEach } from '../../src/host/facts/parse-text.ts';
import { parseUnitState } from '../../src/host/facts/unit.ts';
import { planSwapOff } from '../../src/host/install/kernel.ts';
import { readKeyFingerprints } from '../../src/host/install/openpgp.ts';
import { unifiedDiff } from '../../src/host/plan/text-diff.ts';
import { parseEnvironmentFile, splitCommandWords } from '../../src/host/systemd/environment.ts';
import { parseUnitFile } from '../../src/host/systemd/unit-file.ts';
import { clusterRefused } from '../../src/kube/cluster-problems.ts';
import { parseImages } from '../../src/kubeadm/phases/pull-images.ts';
import { validateCertificates } from '../../src/kubeadm/pki/validate-certificates.ts';
import { parseContainerdConfig, parseCrictlRuntimeConfig, parseCrioConfig } from '../../src/kubelet/facts/cgroup-driver.ts';
import { parseSwaps } from '../../src/kubelet/facts/host-facts.ts';
import { explainKubeletFailure, explainKubeletOutput } from '../../src/kubelet/facts/kubelet-failure.ts';
import { kubeletIssue } from '../../src/kubelet/facts/kubelet-issue.ts';
import { parseKubeletProcess } from '../../src/kubelet/facts/kubelet-process.ts';
import { parseKubeletVersion } from '../../src/kubelet/facts/kubelet-version.ts';
import { leftoversExcept } from '../../src/kubelet/facts/leftovers.ts';
import { readFlagsEnv } from '../../src/kubelet/flags/flags-env.ts';
import { readPrivateKeyHeader } from '../../src/ssh/key-format.ts';
import { readOpensshFailure } from '../../src/ssh/openssh-arguments.ts';
import { readCertificateRequest } from '../../src/x509/certificate-request.ts';
import { publicKeyFits, readPrivateKey } from '../../src/x509/private-key.ts';
import { parseCertificates, readCertificateChain, readCertificateHead } from '../../src/x509/read-certificate.ts';
import { within } from '../support/within.ts';

const KEY = createPrivateKey(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }));
const SSH = { name: 'h', hostName: 'h', port: 22, user: 'u', identityFiles: [], connectTimeoutMs: 1 } as never;
const TIMES = { withinMs: 0, now: new Date() };

/** Functions that parse text of hosts and servers. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  parseOsRelease,
  parseFibTrie,
  parseIfInet6,
  parseContainerdConfig,
  parseCrictlRuntimeConfig,
  parseCrioConfig,
  defaultDevice4,
  defaultDevice6,
  kubeletFailure: (text) => explainKubeletFailure(null, text),
  kubeletOutput: explainKubeletOutput,
  parseKubeletProcess,
  kubeletIssue,
  parseKubeletVersion,
  leftovers: (content) =>
    leftoversExcept([]).parse({ ...NO_LEFTOVERS, defaults: { type: 'file', mode: 0, owner: '', content } } as never, parseEach),
  parseProcNetTcp,
  parseSwaps,
  parseOwnAddresses,
  parseUnitState,
  fstab: (content) => planSwapOff({ fstab: { type: 'file', mode: 0o644, owner: 'root:root', content }, active: [] }),
  openpgp: readKeyFingerprints,
  readFlagsEnv,
  readPrivateKey,
  publicKeyFits: (text) => publicKeyFits(text, KEY),
  sshPrivateKey: readPrivateKeyHeader,
  certificatesOfKubelet: (pem) =>
    validateCertificates({ certificates: [{ role: 'client', path: 'p', pem, key: new Secret(pem) }], cas: [pem] } as never, TIMES),
  parseCertificates,
  readCertificateHead: (text) => quietly(() => readCertificateHead(text)),
  readCertificateRequest,
  readCertificateChain,
  opensshFailure: (text) => readOpensshFailure(SSH, text),
  parseEnvironmentFile,
  splitCommandWords,
  parseUnitFile,
  parseRecord,
  parseImages,
  parseGoDuration,
  inlineValue,
  parseIp,
  maskSecrets,
  printable,
  escapeUnprintable,
  parseQuantity,
  table: (text) => renderTable([[text, text]]),
  encodeYaml: (text) => encodeYaml({ a: text }),
  resolvePlainScalar,
  parseSource: (text) => parseSource(text, 'f'),
  refusal: (message) => clusterRefused('get Node', { message, httpStatus: 403 }),
  diff: (text) => unifiedDiff(text, `${text}x`, { before: 'a', after: 'b' }),
  diffOfAnother: (text) => unifiedDiff(text, 'a: b\n'.repeat(100), { before: 'a', after: 'b' }),
};

const NO_LEFTOVERS = {
  cni: null,
  cniState: null,
  etcd: null,
  kubeconfig: null,
  sysconfig: null,
  dropIns: null,
  packaged: null,
  agent: null,
  enabled: { exitCode: 1, stdout: '', stderr: '' },
  network: { exitCode: 1, stdout: '', stderr: '' },
};

/** A repeated unit, with the text before and after it. */
const SHAPES: readonly (readonly [before: string, unit: string, after: string])[] = [
  ...[
    ' ',
    '\n',
    ' \n',
    '\n\t',
    'a',
    '0',
    '.0',
    '9.',
    '1_',
    '"',
    "'",
    '\\',
    '\\"',
    '\\\n',
    '[',
    '{',
    '(',
    '[a',
    '[\t',
    ',',
    ', ',
    ':',
    '::',
    '/',
  ].map((unit) => ['', unit, ''] as const),
  ...[
    '=',
    '==',
    '#',
    '-',
    '- ',
    '@',
    '%',
    '%{',
    '${',
    '~',
    '*',
    '&a ',
    '!',
    '|',
    '>',
    '? ',
    '\r',
    '\u2028',
    '\u202e',
    'é',
    'a b ',
    'a\n',
    'a=b\n',
  ].map((unit) => ['', unit, ''] as const),
  ['A=', ' ', 'x'],
  ['A="', '\\', 'x'],
  ['', '-eyJ', ''],
  ['', 'eyJaaaaaaaa.', ''],
  ['', 'eyJaaaaaaaa-', ''],
  ['', '-----BEGIN CERTIFICATE-----', ''],
  ['', '-----BEGIN CERTIFICATE-----\nAAAA\n', ''],
  ['', '-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n', ''],
  ['-----BEGIN CERTIFICATE REQUEST-----\n', 'AAAA\n', ''],
  ['', '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n', ''],
  ['', '-----BEGIN PRIVATE KEY-----', ''],
  ['', '-----BEGIN RSA PRIVATE KEY-----\n', ''],
  ['', '-----BEGIN RSA PRIVATE KEY-----EC PRIVATE KEY-----', ''],
  ['', '-----BEGIN PUBLIC KEY-----', ''],
  ['', '-----BEGIN PGP PUBLIC KEY BLOCK-----\n', ''],
  ['', '-----BEGIN ', ''],
  ['', '-----END CERTIFICATE-----', ''],
  ['', 'token: |\n\n', ''],
  ['', ',token:"\\"', ''],
  ['{', ' token: ', ''],
  ['', '"{\\"', ''],
  ['', 'E1122 10:00:00.000000       1 run.go:72] "a" err="b\n', ''],
  ['', 'E1122 10:00:00.000000       1 run.go:72] "command failed" err="\\"', '\n'],
  ['E1122 10:00:00.000000       1 run.go:72] "command failed" err=<\n', '\tx\n', ''],
  ['', 'E1122 10:00:00.000000       1 run.go:72] "a" err=<\n', ''],
  ['', 'Started kubelet\n', ''],
  ['', 'x\n', ''],
  ['', '{"msg":"a","err":"', ''],
  ['', '1: A:0016 B:0000 0A ', ''],
  ['1: ', 'A', ''],
  ['', '1: eth0 inet ', ''],
  ['1: ', 'e ', ''],
  ['KUBELET_EXTRA_ARGS=', '\n', ''],
  ['Kubernetes v1.36.2', ' ', 'x'],
  ['Kubernetes v1.', '1', 'x'],
  ['cgroup driver:', ' ', ''],
  ['', '[plugins.cri.containerd.runtimes.a]\n', ''],
  ['[', '].containerd.runtimes.', ''],
  ['', '|-- 10.0.0.1\n/32 host LOCAL\n', ''],
  ['a b ', 'swap ', ''],
  ['', 'a b swap\n', ''],
  ['', ' a', '\n'],
  ['@', '@', ' Permission denied ('],
];

/** Starts of kubelet messages for which an explanation exists. */
const REPORTED = [
  'part of the existing bootstrap client certificate in ',
  'unable to load bootstrap kubeconfig',
  'unable to read existing bootstrap client config from a: ',
  'unable to load bootstrap kubeconfig: a; json parse error: ',
  'invalid kubeconfig: invalid configuration: ',
  'failed to load kubelet config file failed to decode: a in scheme "',
  'failed to load kubelet config file open ',
  'kubelet config file "',
  'cannot set feature gate a to b, feature is locked to ',
  'unrecognized feature gate: ',
  'the a',
  'the a feature gate must be enabled in order to use the --',
  'unknown flag: ',
  'invalid argument a for b flag: ',
  'invalid configuration: , path: &TypeMeta',
  'kubelet cgroup driver: "a" is different from b cgroup driver: "',
  'Cipher suite ',
  'unknown tls version "',
  'failed to run Kubelet: --a value failed to parse',
  'failed to run Kubelet: open ',
  'initialize logging: ',
  'listen tcp :1',
  'validate CRI v1 runtime API for endpoint "a"',
  'Failed to start ContainerManager: ',
  'Failed to start cAdvisor: ',
  'Failed to create listener for a endpoint',
  'Failed while requesting a signed certificate from the master" err="',
  'Failed while requesting a signed certificate from the master: ',
  'Unable to register node "a" with API server" err="',
  'REMOTE HOST IDENTIFICATION host key for ',
  'host key No ',
  'Permission denied (',
];
const KUBELET_READERS = ['kubeletFailure', 'kubeletOutput', 'kubeletIssue', 'opensshFailure'];

/** More than linear time shows in a small text already; files of a host may be twice as large as the large one. */
const SIZES = [2 * 1024, 128 * 1024];
/** A linear parser needs some milliseconds, and all hosts of a run wait meanwhile. */
const MAX_MS = 1_000;
/** The yaml package takes up to ten microseconds per character. */
const MAX_YAML_MS = 3_000;

describe('no output of a host takes long to parse', { timeout: 60_000 }, () => {
  it.each(Object.keys(READERS))('%s', async (name) => {
    const reported = KUBELET_READERS.includes(name) ? REPORTED.map((unit) => ['', unit, '\n'] as const) : [];
    for (const [before, unit, after] of [...SHAPES, ...reported])
      for (const size of SIZES) {
        const text = before + unit.repeat(Math.floor(size / unit.length)) + after;
        const limitMs = name === 'parseSource' ? MAX_YAML_MS : MAX_MS;
        await within(limitMs, () => READERS[name]?.(text), `${size / 1024} KiB of ${JSON.stringify(unit)}`);
      }
  });
});

function quietly(use: () => unknown): unknown {
  try {
    return use();
  } catch (error) {
    return error;
  }
}
