import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-cli.ts';
import { numberOfRuns } from '../support/thorough.ts';
import { within } from '../support/within.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-validate-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const KUBEADM = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n';

function file(name: string, content: string | Uint8Array): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

interface ReportedProblem extends Readonly<Record<'severity' | 'path' | 'rule' | 'message' | 'hint', string>> {
  readonly line: number;
  readonly column: number;
}

interface Report {
  readonly file: string;
  readonly ok: boolean;
  readonly problems: readonly ReportedProblem[];
}

async function validate(text: string | Uint8Array, ...options: readonly string[]): Promise<Report> {
  const path = file('checked.yaml', text);
  const { code, stdout, stderr } = await runCommand(['config', 'validate', path, '-o', 'json', ...options]);
  const [report, ...others] = JSON.parse(stdout) as readonly Report[];
  expect([others, stderr, code]).toEqual([[], '', report?.ok ? 0 : 2]);
  return report as Report;
}

function validateAsKubeadm(text: string) {
  const args = ['config', 'validate', '--config', file('checked.yaml', text)];
  return runCommand(args, { env: { KUBELETADM_PROGRAM_NAME: 'kubeadm' } });
}

const rulesOf = ({ problems }: Report): readonly string[] => problems.map(({ rule, line, path }) => `${line} ${path} ${rule}`);

describe('config validate', () => {
  it('prints ok for valid files, and names the invalid one', async () => {
    const [good, bad] = [file('good.yaml', `${HEADER}maxPods: 50\n`), file('bad.yaml', `${HEADER}maxPod: 50\n`)];
    expect(await runCommand(['config', 'validate', good])).toEqual({ code: 0, stdout: 'ok\n', stderr: '' });
    expect(await runCommand(['config', 'validate', good, bad, `${directory}/none.yaml`, directory])).toEqual({
      code: 2,
      stdout: `${good}: ok\n`,
      stderr: `${bad}:3:1 maxPod: unknown field. Did you mean maxPods? [CONFIG_UNKNOWN_FIELD]
cannot read ${directory}/none.yaml: no such file or directory. Check the path. [INPUT_UNREADABLE]
cannot read ${directory}: the path is a directory. Check the path. [INPUT_UNREADABLE]
`,
    });
  });

  it('reads standard input', async () => {
    const options = { stdin: `${HEADER}healthzPort: 70000\n` };
    expect(await runCommand(['config', 'validate', '-'], options)).toMatchObject({ code: 2, stderr: /^standard input:3:1 healthzPort: /s });
  });

  it('reports every problem of each file as JSON', async () => {
    const [good, bad] = [file('good.yaml', HEADER), file('bad.yaml', `${HEADER}maxPod: 50\n`)];
    const { code, stdout, stderr } = await runCommand(['config', 'validate', '-o', 'json', good, bad, `${directory}/none.yaml`]);
    expect([code, stderr]).toEqual([2, '']);
    expect(JSON.parse(stdout)).toEqual([
      { file: good, ok: true, problems: [] },
      {
        file: bad,
        ok: false,
        problems: [
          {
            severity: 'error',
            path: 'maxPod',
            line: 3,
            column: 1,
            rule: 'CONFIG_UNKNOWN_FIELD',
            message: 'unknown field',
            hint: 'Did you mean maxPods?',
          },
        ],
      },
      {
        file: `${directory}/none.yaml`,
        ok: false,
        problems: [
          {
            severity: 'error',
            path: '',
            line: 0,
            column: 0,
            rule: 'INPUT_UNREADABLE',
            message: `cannot read ${directory}/none.yaml: no such file or directory`,
            hint: 'Check the path',
          },
        ],
      },
    ]);
  });

  it('writes SARIF for code scanners', async () => {
    const bad = file('b d.yaml', `${HEADER}maxPod: 50\nmaxPods: 51\nmaxPods: 52\n`);
    const { code, stdout } = await runCommand(['config', 'validate', '-o', 'sarif', '--lenient', bad, 'none.yaml']);
    expect(code).toBe(2);
    const log = JSON.parse(stdout);
    expect(log).toMatchObject({ $schema: 'https://json.schemastore.org/sarif-2.1.0.json', version: '2.1.0' });
    const [run] = log.runs;
    expect(run.tool.driver.rules.map(({ id }: { id: string }) => id)).toEqual([
      'CONFIG_DUPLICATE_FIELD',
      'CONFIG_UNKNOWN_FIELD',
      'INPUT_UNREADABLE',
    ]);
    for (const { ruleId, ruleIndex } of run.results) expect(run.tool.driver.rules[ruleIndex].id).toBe(ruleId);
    expect(run.results.map(({ ruleId, level }: Record<string, string>) => [ruleId, level])).toEqual([
      ['CONFIG_UNKNOWN_FIELD', 'warning'],
      ['CONFIG_DUPLICATE_FIELD', 'warning'],
      ['INPUT_UNREADABLE', 'error'],
    ]);
    expect(run.results[0]).toMatchObject({
      message: { text: 'maxPod: unknown field. Did you mean maxPods?' },
      locations: [
        {
          physicalLocation: {
            artifactLocation: { uri: `file://${directory}/b%20d.yaml` },
            region: { startLine: 3, startColumn: 1 },
          },
          logicalLocations: [{ fullyQualifiedName: 'maxPod' }],
        },
      ],
    });
    expect(run.results[2].locations).toEqual([
      { physicalLocation: { artifactLocation: { uri: 'none.yaml' }, region: { startLine: 1, startColumn: 1 } } },
    ]);
  });

  it('writes annotations for GitHub and a JUnit report', async () => {
    const bad = file('bad-ci.yaml', `${HEADER}maxPod: 50\n`);
    const github = await runCommand(['validate', '-o', 'github', bad, file('good.yaml', HEADER)]);
    expect(github).toEqual({
      code: 2,
      stdout: `::error file=${bad},line=3,col=1,title=CONFIG_UNKNOWN_FIELD::maxPod: unknown field. Did you mean maxPods?\n`,
      stderr: '',
    });
    const { code, stdout } = await runCommand(['validate', '-o', 'junit', bad, file('good.yaml', HEADER)]);
    expect([code, stdout]).toEqual([
      2,
      expect.stringContaining('<testsuites name="kubeletadm validate" tests="2" failures="1" errors="0">'),
    ]);
    expect(stdout).toContain('<failure type="CONFIG_UNKNOWN_FIELD"');
  });

  it('writes SARIF when all files are valid', async () => {
    const { code, stdout } = await runCommand(['config', 'validate', '-o', 'sarif', file('good.yaml', HEADER)]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).runs).toMatchObject([{ results: [], tool: { driver: { rules: [] } } }]);
  });

  it.each<[string, string, readonly string[]]>([
    ['strict', `${HEADER}x: 1\nmaxPods: 1\nmaxPods: 2\n`, ['3 x CONFIG_UNKNOWN_FIELD', '5 maxPods CONFIG_DUPLICATE_FIELD']],
    ['no kind', 'apiVersion: kubelet.config.k8s.io/v1beta1\n', ['1 kind CONFIG_MISSING_HEADER']],
    ['no apiVersion', 'kind: KubeletConfiguration\n', ['1 apiVersion CONFIG_MISSING_HEADER']],
    ['another version', 'apiVersion: kubelet.config.k8s.io/v1alpha1\nkind: KubeletConfiguration\n', ['1 apiVersion CONFIG_WRONG_KIND']],
    ['further documents, which a kubelet ignores', `${HEADER}---\n${HEADER}x: 1\n`, ['4  CONFIG_IGNORED_DOCUMENT']],
    [
      'a first document that is empty',
      `---\n---\n${HEADER}`,
      ['1 apiVersion CONFIG_MISSING_HEADER', '1 kind CONFIG_MISSING_HEADER', '3  CONFIG_IGNORED_DOCUMENT'],
    ],
    [
      'a first document of another kind',
      `apiVersion: v1\nkind: Pod\n---\n${HEADER}`,
      ['1 apiVersion CONFIG_WRONG_KIND', '2 kind CONFIG_WRONG_KIND', '4  CONFIG_IGNORED_DOCUMENT'],
    ],
    ['JSON that is YAML', '{kind: KubeletConfiguration, apiVersion: kubelet.config.k8s.io/v1beta1}', ['1  CONFIG_SYNTAX']],
    ['next to kubeadm documents', `${KUBEADM}kubernetesVersion: v1.36.0\n---\n${HEADER}x: 1\n`, ['7 x CONFIG_UNKNOWN_FIELD']],
  ])('validates a KubeletConfiguration: %s', async (_, text, expected) => {
    expect(rulesOf(await validate(text))).toEqual(expected);
  });

  it.each([
    ['1.21', false],
    ['v1.26.3', true],
    ['1.36', true],
    ['1.99', true],
  ])('validates against the requested version: %s', async (version, ok) => {
    // seccompDefault came with 1.22
    expect((await validate(`${HEADER}seccompDefault: true\n`, '--kubernetes-version', version)).ok).toBe(ok);
  });

  // The verdicts of kubeadm 1.36.2.
  it.each([
    ['1.30.4', false],
    ['v1.34.9', false],
    ['v1.35.0-rc.0', false],
    ['ci/v1.30.0', false],
    ['v1.35.0', true],
    ['v1.35.1-alpha.0', true],
    ['1.99.0', true],
    ['stable-1.36', true],
  ])('refuses a version that init refuses, at its line: %s', async (version, ok) => {
    expect(rulesOf(await validate(`${KUBEADM}kubernetesVersion: ${version}\n`))).toEqual(
      ok ? [] : ['3 kubernetesVersion KUBERNETES_VERSION_UNSUPPORTED'],
    );
    expect((await validateAsKubeadm(`${KUBEADM}kubernetesVersion: ${version}\n`)).code).toBe(ok ? 0 : 1);
  });

  it('names a discovery file that does not exist; an error as kubeadm, else a warning', async () => {
    const present = file('discovery.conf', '');
    const join = (path: string): string =>
      `apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery:\n  file:\n    kubeConfigPath: ${path}\n`;
    for (const path of [`${directory}/none.conf`, 'none.conf', `file://${directory}/none.conf`]) {
      const { ok, problems } = await validate(join(path));
      expect(ok).toBe(true);
      expect(problems).toMatchObject([{ severity: 'warning', line: 5, path: 'discovery.file.kubeConfigPath', rule: 'INPUT_UNREADABLE' }]);
      expect((await validateAsKubeadm(join(path))).code).toBe(1);
    }
    for (const path of [present, directory, `file://${present}`, 'https://example.com/discovery.conf']) {
      expect((await validate(join(path))).problems).toEqual([]);
      expect((await validateAsKubeadm(join(path))).code).toBe(0);
    }
  });

  it('refuses metadata only as kubeadm', async () => {
    const text = `${KUBEADM}metadata:\n  name: config\n`;
    expect(await validate(text)).toMatchObject({ ok: true, problems: [{ severity: 'warning', path: 'metadata', line: 3 }] });
    expect(await validateAsKubeadm(text)).toMatchObject({ code: 1, stdout: '' });
  });

  it('reports a field of an unknown newer version as a warning', async () => {
    const report = await validate(`${HEADER}fieldOfTomorrow: 1\n`, '--kubernetes-version', '1.50');
    expect(report).toMatchObject({
      ok: true,
      problems: [{ rule: 'KUBELET_RULES_OF_OTHER_MINOR' }, { severity: 'warning', rule: 'CONFIG_UNKNOWN_FIELD' }],
    });
  });

  it.each([
    [
      ['--kubernetes-version', '1.10'],
      /--kubernetes-version 1.10 is not a supported kubelet version. Use a version from 1.11 to 1.37. \[USAGE\]/,
    ],
    [['--kubernetes-version', 'x'], /--kubernetes-version x is not a version/],
  ])('rejects %j', async (options, message) => {
    const { code, stderr } = await runCommand(['config', 'validate', file('good.yaml', HEADER), ...options]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });

  it('requires a file', async () => {
    expect(await runCommand(['config', 'validate'])).toMatchObject({ code: 2, stderr: /no file to check/ });
  });
});

describe('config validate --kubelet', () => {
  /** A kubelet that fails with the given error for any configuration. */
  function kubelet(name: string, failure: string): string {
    const path = file(
      name,
      `#!/bin/sh\nif [ "$1" = --version ]; then echo Kubernetes v1.30.4; exit; fi\necho 'E1121 19:39:44.486318   30208 run.go:72] "command failed" err="${failure}"' >&2\nexit 1\n`,
    );
    chmodSync(path, 0o755);
    return path;
  }
  const accepts = 'failed to run Kubelet: cannot exit on lock file contention: no lock file specified';
  const refuses = 'failed to validate kubelet configuration, error: invalid configuration: odd, path: &TypeMeta{Kind:,APIVersion:,}';

  it.each<[string, string, string, readonly string[]]>([
    ['both accept', accepts, HEADER, []],
    ['both reject', refuses, `${HEADER}maxPods: -1\n`, ['3 maxPods KUBELET_OUT_OF_RANGE']],
    ['only the kubelet rejects', refuses, HEADER, ['1  KUBELET_REFUSES']],
    ['only the kubelet accepts', accepts, `${HEADER}maxPods: -1\n`, ['3 maxPods KUBELET_OUT_OF_RANGE', '1  KUBELET_ACCEPTS']],
    ['the kubelet ignores an unknown field', accepts, `${HEADER}x: 1\n`, ['3 x CONFIG_UNKNOWN_FIELD']],
    ['the kubelet fails without a known reason', 'oops" x', HEADER, ['1  KUBELET_REFUSES']],
    ['the file has kubeadm documents', refuses, `${KUBEADM}---\n${HEADER}`, ['1  KUBELET_REFUSES']],
    ['the file has no KubeletConfiguration', refuses, KUBEADM, []],
    ["the kubelet's version lacks a field", accepts, `${HEADER}failCgroupV1: false\n`, ['3 failCgroupV1 CONFIG_UNKNOWN_FIELD']],
  ])('compares: %s', async (_, failure, text, expected) => {
    expect(rulesOf(await validate(text, '--kubelet', kubelet('kubelet', failure)))).toEqual(expected);
  });

  it("reports the kubelet's version and its reason", async () => {
    const { stderr, code } = await runCommand(['config', 'validate', '--kubelet', kubelet('kubelet', refuses), file('good.yaml', HEADER)]);
    expect([code, stderr]).toEqual([
      2,
      `${directory}/good.yaml:1:1: kubelet v1.30.4 refuses this configuration: odd. Change the fields named in the message. [KUBELET_REFUSES]\n`,
    ]);
  });

  it('requires a kubelet and excludes --kubernetes-version', async () => {
    const good = file('good.yaml', HEADER);
    const none = await runCommand(['config', 'validate', good, '--kubelet', `${directory}/none`]);
    expect(none).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/none does not exist or cannot be executed.*\[KUBELET_NOT_ASKED\]/),
    });
    const other = await runCommand(['config', 'validate', good, '--kubelet', kubelet('kubelet', accepts), '--kubernetes-version', '1.36']);
    expect(other).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--kubernetes-version 1.36 differs from the version of kubelet v1.30.4, which validates the file/),
    });
  });
});

describe('bad input', () => {
  const utf16 = (text: string): Uint8Array => Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')]);

  it.each<[string, string | Uint8Array, readonly string[]]>([
    ['nothing', '', ['1  CONFIG_EMPTY']],
    ['only comments', '# a\n', ['1  CONFIG_EMPTY']],
    ['binary', Uint8Array.from({ length: 4_096 }, (_, i) => (i * 131) % 256), ['1  CONFIG_NOT_TEXT']],
    ['UTF-16', utf16(HEADER), ['1  CONFIG_NOT_TEXT']],
    ['Latin-1', Buffer.from(`${HEADER}clusterDomain: b\xfcro\n`, 'latin1'), ['3  CONFIG_NOT_TEXT']],
    ['10 MB', `${HEADER}# ${'x'.repeat(10 * 1024 * 1024)}\n`, ['1  CONFIG_TOO_LARGE']],
    ['10 MB of brackets', '['.repeat(10 * 1024 * 1024), ['1  CONFIG_TOO_LARGE']],
    ['20 MB', Buffer.alloc(20 * 1024 * 1024, 'a'), ['0  INPUT_TOO_LARGE']],
    ['100,000 levels in brackets', `${HEADER}x: ${'['.repeat(100_000)}${']'.repeat(100_000)}\n`, ['1  CONFIG_TOO_LARGE']],
    ['100,000 levels of lists', `${HEADER}x: \n ${'- '.repeat(100_000)}1\n`, ['1  CONFIG_TOO_LARGE']],
    [
      '1,000 levels of mappings',
      `${HEADER}${Array.from({ length: 1_000 }, (_, i) => `${' '.repeat(i)}x:`).join('\n')}\n`,
      ['1  CONFIG_TOO_LARGE'],
    ],
    [
      'a YAML bomb',
      `${HEADER}a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i},`.repeat(10)}]\n`).join('')}`,
      ['1  CONFIG_TOO_LARGE'],
    ],
    ['tabs', `${HEADER}authentication:\n\tanonymous: {}\n`, ['4  CONFIG_SYNTAX']],
    ['a duplicate key', `${HEADER}maxPods: 1\nmaxPods: 2\n`, ['4 maxPods CONFIG_DUPLICATE_FIELD']],
    ['a list', '- a\n', ['1  CONFIG_WRONG_TYPE']],
    ['a string', 'hello\n', ['1  CONFIG_WRONG_TYPE']],
    ['another kind', 'apiVersion: v1\nkind: Pod\n', ['2  CONFIG_UNKNOWN_KIND']],
    ['an open quote', `${HEADER}clusterDomain: "a\n`, ['4  CONFIG_SYNTAX']],
  ])('reports one error for %s', async (_, content, expected) => {
    const report = await within(5_000, () => validate(content));
    expect(report.ok).toBe(false);
    expect(rulesOf(report)).toEqual(expected);
  });

  it.each<[string, string]>([
    ['CRLF', `${HEADER}maxPods: 50\n`.replaceAll('\n', '\r\n')],
    ['a byte order mark', `\ufeff${HEADER}maxPods: 50\n`],
    ['YAML markers', `---\n${HEADER}maxPods: 50\n...\n`],
    ['anchors', `${HEADER}maxPods: &n 50\nregistryBurst: *n\nregistryPullQPS: 50\n`],
    ['JSON', JSON.stringify({ kind: 'KubeletConfiguration', apiVersion: 'kubelet.config.k8s.io/v1beta1', maxPods: 50 }, null, 2)],
  ])('accepts %s', async (_, text) => {
    expect(await validate(text)).toMatchObject({ ok: true, problems: [] });
  });

  it('rejects an endless device', async () => {
    expect(await runCommand(['config', 'validate', '/dev/zero'])).toMatchObject({
      code: 2,
      stderr: /^\/dev\/zero has more than \d+ bytes/,
    });
  });

  const field = fc.constantFrom(
    ...[
      'maxPods',
      'evictionHard',
      'featureGates',
      'clusterDNS',
      'authentication',
      'webhook',
      'cacheTTL',
      'logging',
      'options',
      'reservedMemory',
    ],
    ...[
      'limits',
      'registerWithTaints',
      'kubeReserved',
      'tlsCipherSuites',
      'shutdownGracePeriod',
      'containerLogMaxSize',
      '__proto__',
      'toString',
    ],
    ...['memorySwap', 'swapBehavior', 'tracing', 'samplingRatePerMillion', 'crashLoopBackOff', 'x'],
  );
  const scalar = fc.constantFrom<unknown>(
    ...[null, true, 0, -1, 1.5, 2 ** 40, '', 'x', '10%', '5m', '1Gi', '10.0.0.1', 'NodeSwap', 'é\ud83d\ude00', [], {}],
  );
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof({ maxDepth: 4 }, scalar, fc.dictionary(field, tie('tree'), { maxKeys: 4 }), fc.array(tie('tree'), { maxLength: 3 })),
  }));
  const structured = fc.dictionary(field, tree, { maxKeys: 6 }).map((body) =>
    Buffer.from(
      `${HEADER}${Object.entries(body)
        .map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}\n`)
        .join('')}`,
    ),
  );
  /** A valid file with some bytes changed, or arbitrary bytes. */
  const damaged = fc
    .array(fc.tuple(fc.nat({ max: 200 }), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 8 })
    .map((changes) => {
      const bytes = Buffer.from(
        `${HEADER}maxPods: 50\nevictionHard:\n  memory.available: 100Mi\nclusterDNS: [10.96.0.10]\nfeatureGates: {NodeSwap: true}\n`,
      );
      for (const [at, value] of changes) bytes[at % bytes.length] = value;
      return bytes;
    });
  const anything = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));

  it('any bytes are reported with line, column and rule', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(structured, damaged, anything), fc.constantFrom('1.20', '1.27', '1.36', '1.50'), async (bytes, version) => {
        const { ok, problems } = await within(5_000, () => validate(bytes, '--kubernetes-version', version));
        expect(ok).toBe(problems.every(({ severity }) => severity === 'warning'));
        for (const { line, column, rule, message } of problems) {
          expect([line > 0, column > 0, /^[A-Z][A-Z0-9_]+$/.test(rule), message !== '']).toEqual([true, true, true, true]);
        }
      }),
      { numRuns: numberOfRuns(1_500) },
    );
  });
});

describe('a version whose rules are only partly known', () => {
  const config = file('old.yaml', `${HEADER}cpuCFSQuotaPeriod: 5ms\n`);
  const other = file('other.yaml', `${HEADER}maxPods: 5\n`);

  it('is named once, in one warning for all files of a run', async () => {
    const { code, stderr, stdout } = await runCommand(['config', 'validate', config, other, '--kubernetes-version', '1.17']);
    expect(stderr).toBe(
      `warning: ${config}:1:1: Kubernetes 1.17 is older than the oldest supported version: fields, flags and gates are validated by its own rules, but startup checks by the rules of 1.20 [KUBELET_RULES_OF_OTHER_MINOR]\n`,
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${config}: ok\n${other}: ok\n` });
    expect(await runCommand(['config', 'validate', config, '--kubernetes-version', '1.20'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('KUBELET_NEEDS_GATE'),
    });
  });

  it.each([
    [
      'v1.38.0',
      'kubeletadm does not know Kubernetes 1.38: fields, flags, gates and values are checked by the rules of 1.37, the newest known version',
    ],
    [
      'v1.17.9',
      'Kubernetes 1.17 is older than the oldest supported version: fields, flags and gates are validated by its own rules, but startup checks by the rules of 1.20',
    ],
    [
      'v1.9.0',
      'kubeletadm does not know Kubernetes 1.9: fields, flags, gates and values are checked by the rules of 1.11, the oldest known version',
    ],
  ])('from a ClusterConfiguration is honoured: %s', async (version, message) => {
    const documents = file('documents.yaml', `${KUBEADM}kubernetesVersion: ${version}\n---\n${HEADER}maxPods: 5\n`);
    const { stderr } = await runCommand(['config', 'validate', documents]);
    expect(stderr).toContain(`: ${message} [KUBELET_RULES_OF_OTHER_MINOR]\n`);
  });

  it('causes no warning while all its rules are known', async () => {
    for (const version of ['1.20', '1.36'])
      expect(await runCommand(['config', 'validate', other, '--kubernetes-version', version])).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('an overlay', () => {
  const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';

  it('is validated field by field', async () => {
    expect(await runCommand(['config', 'validate', file('overlay.yaml', `${OVERLAY}maxPods: 60\n`)])).toMatchObject({
      code: 0,
      stderr: '',
    });
    const { code, stderr } = await runCommand(['config', 'validate', file('overlay.yaml', `${OVERLAY}maxPod: 60\n`)]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('overlay.yaml:3:1 maxPod: unknown field. Did you mean maxPods?')]);
  });
});
