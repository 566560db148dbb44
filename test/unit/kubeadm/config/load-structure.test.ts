import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../../src/kubeadm/config/load.ts';
import { DISCOVERY, type DocumentName, documentOf, linesOf, load } from './support.ts';

type Case = readonly [name: string, document: DocumentName, body: string, expected: readonly string[]];

function expectLines([, document, body, expected]: Case): void {
  expect(linesOf(load(documentOf(document, body)))).toEqual(expected);
}

describe('unknown fields', () => {
  it.each<Case>([
    [
      'misspelled',
      'init',
      'nodeRegistration:\n  criSockt: x',
      ['f.yaml:4:3 nodeRegistration.criSockt: unknown field. Did you mean criSocket? [CONFIG_UNKNOWN_FIELD]'],
    ],
    [
      'two letters swapped',
      'cluster',
      'cluserName: x',
      ['f.yaml:3:1 cluserName: unknown field. Did you mean clusterName? [CONFIG_UNKNOWN_FIELD]'],
    ],
    [
      'another case',
      'cluster',
      'ControlPlaneEndpoint: test1',
      ['f.yaml:3:1 ControlPlaneEndpoint: unknown field. Did you mean controlPlaneEndpoint? [CONFIG_UNKNOWN_FIELD]'],
    ],
    ['no similar field', 'cluster', 'unknownField: test', ['f.yaml:3:1 unknownField: unknown field [CONFIG_UNKNOWN_FIELD]']],
    ['no similar field in init', 'init', 'unknownField: test', ['f.yaml:3:1 unknownField: unknown field [CONFIG_UNKNOWN_FIELD]']],
    [
      'no similar field in join',
      'join',
      `${DISCOVERY}unknownField: test`,
      ['f.yaml:4:1 unknownField: unknown field [CONFIG_UNKNOWN_FIELD]'],
    ],
    ['no similar field in reset', 'reset', 'foo: bar', ['f.yaml:3:1 foo: unknown field [CONFIG_UNKNOWN_FIELD]']],
    [
      'nested in the same kind',
      'cluster',
      'podSubnet: 10.0.0.0/16',
      ['f.yaml:3:1 podSubnet: unknown field. Did you mean networking.podSubnet? [CONFIG_UNKNOWN_FIELD]'],
    ],
    [
      'in another kind',
      'init',
      'podSubnet: 10.0.0.0/16',
      ['f.yaml:3:1 podSubnet: unknown field. Set the field in ClusterConfiguration: networking.podSubnet [CONFIG_UNKNOWN_FIELD]'],
    ],
    [
      'in another kind, nested',
      'join',
      `${DISCOVERY}nodeRegistration:\n  serviceSubnet: x`,
      [
        'f.yaml:5:3 nodeRegistration.serviceSubnet: unknown field. Set the field in ClusterConfiguration: networking.serviceSubnet [CONFIG_UNKNOWN_FIELD]',
      ],
    ],
    [
      'the shallowest place wins',
      'init',
      'name: cp-1',
      ['f.yaml:3:1 name: unknown field. Did you mean nodeRegistration.name? [CONFIG_UNKNOWN_FIELD]'],
    ],
    [
      'in a list',
      'init',
      'bootstrapTokens:\n- tokn: x',
      ['f.yaml:4:3 bootstrapTokens[0].tokn: unknown field. Did you mean token? [CONFIG_UNKNOWN_FIELD]'],
    ],
    [
      'v1beta3 only',
      'cluster',
      'apiServer:\n  timeoutForControlPlane: 4m',
      [
        'f.yaml:4:3 apiServer.timeoutForControlPlane: unknown field. Use timeouts.controlPlaneComponentHealthCheck of InitConfiguration and JoinConfiguration (v1beta4) instead [CONFIG_UNKNOWN_FIELD]',
      ],
    ],
    [
      'v1beta3 only in join',
      'join',
      'discovery: {timeout: 5m, bootstrapToken: {}}',
      ['f.yaml:3:13 discovery.timeout: unknown field. Use timeouts.discovery (v1beta4) instead [CONFIG_UNKNOWN_FIELD]'],
    ],
    [
      'v1beta4 only',
      'init3',
      'dryRun: true',
      [
        'f.yaml:3:1 dryRun: unknown field. Use apiVersion kubeadm.k8s.io/v1beta4, which has this field. To convert the file, run kubeletadm config migrate --old-config FILE [CONFIG_UNKNOWN_FIELD]',
      ],
    ],
    [
      'v1beta4 only, nested',
      'join3',
      `${DISCOVERY}nodeRegistration: {imagePullSerial: true}`,
      [
        'f.yaml:4:20 nodeRegistration.imagePullSerial: unknown field. Use apiVersion kubeadm.k8s.io/v1beta4, which has this field. To convert the file, run kubeletadm config migrate --old-config FILE [CONFIG_UNKNOWN_FIELD]',
      ],
    ],
    [
      'metadata',
      'init',
      'metadata: {name: x}',
      [
        'f.yaml:3:1 metadata: unknown field. Remove the field: documents of kubeadm have no metadata, spec or status [CONFIG_UNKNOWN_FIELD]',
      ],
    ],
    [
      'property of every JavaScript object',
      'reset',
      'constructor: 1\ntoString: 2\nhasOwnProperty: 3',
      [
        'f.yaml:3:1 constructor: unknown field [CONFIG_UNKNOWN_FIELD]',
        'f.yaml:4:1 toString: unknown field [CONFIG_UNKNOWN_FIELD]',
        'f.yaml:5:1 hasOwnProperty: unknown field [CONFIG_UNKNOWN_FIELD]',
      ],
    ],
    ['__proto__', 'reset', '__proto__: {force: true}', ['f.yaml:3:1 __proto__: unknown field [CONFIG_UNKNOWN_FIELD]']],
    [
      '__proto__ among user-defined names',
      'cluster',
      'featureGates: {__proto__: true}',
      ['f.yaml:3:16 featureGates.__proto__: unknown field [CONFIG_UNKNOWN_FIELD]'],
    ],
    ['a name with special characters', 'reset', '"a.b c": 1', ['f.yaml:3:1 ["a.b c"]: unknown field [CONFIG_UNKNOWN_FIELD]']],
  ])('%s', (...args) => {
    const [name, document, body, expected] = args;
    expectLines([name, document, body, expected.map(withStop)]);
  });
});

/** Adds the full stop that formatProblem prints after a sentence. */
function withStop(line: string): string {
  return line.replace(/([^?.]) \[(\w+)\]$/, (whole, end: string, code: string) =>
    /unknown field\. /.test(line) ? `${end}. [${code}]` : whole,
  );
}

describe('duplicate fields', () => {
  it.each<Case>([
    [
      'in cluster',
      'cluster',
      'controlPlaneEndpoint: test1\ncontrolPlaneEndpoint: test2',
      ['f.yaml:4:1 controlPlaneEndpoint: duplicate field, first on line 3. Remove one of the two fields. [CONFIG_DUPLICATE_FIELD]'],
    ],
    [
      'in init',
      'init',
      'bootstrapTokens:\n- token: 9a08jv.c0izixklcxtmnze7\nbootstrapTokens:\n- token: 9a08jv.c0izixklcxtmnze7',
      ['f.yaml:5:1 bootstrapTokens: duplicate field, first on line 3. Remove one of the two fields. [CONFIG_DUPLICATE_FIELD]'],
    ],
    [
      'in join, nested',
      'join',
      `${DISCOVERY}nodeRegistration:\n  name: a\n  name: a`,
      ['f.yaml:6:3 nodeRegistration.name: duplicate field, first on line 5. Remove one of the two fields. [CONFIG_DUPLICATE_FIELD]'],
    ],
    [
      'the header',
      'reset',
      'kind: ResetConfiguration',
      ['f.yaml:3:1 kind: duplicate field, first on line 2. Remove one of the two fields. [CONFIG_DUPLICATE_FIELD]'],
    ],
    [
      'three times',
      'reset',
      'force: true\nforce: true\nforce: false',
      [
        'f.yaml:4:1 force: duplicate field, first on line 3. Remove one of the two fields. [CONFIG_DUPLICATE_FIELD]',
        'f.yaml:5:1 force: duplicate field, first on line 4. Remove one of the two fields. [CONFIG_DUPLICATE_FIELD]',
      ],
    ],
    [
      'a user-defined name',
      'cluster3',
      'apiServer: {extraArgs: {a: b, a: c}}',
      ['f.yaml:3:31 apiServer.extraArgs.a: duplicate field, first on line 3. Remove one of the two fields. [CONFIG_DUPLICATE_FIELD]'],
    ],
  ])('%s', (...args) => expectLines(args));

  it('allows fields that override a merged YAML mapping', () => {
    const body = 'apiServer: &base\n  extraArgs: [{name: v, value: "4"}]\nscheduler:\n  <<: *base\n  extraArgs: []';
    expectLines(['', 'cluster', body, []]);
  });
});

describe('types', () => {
  it.each<Case>([
    [
      'number for a string',
      'cluster',
      'kubernetesVersion: 1.36',
      ['f.yaml:3:20 kubernetesVersion: expected a string, found the number 1.36. Quote the value. [CONFIG_WRONG_TYPE]'],
    ],
    [
      'boolean word for a string',
      'init',
      'nodeRegistration: {name: on}',
      ['f.yaml:3:26 nodeRegistration.name: expected a string, found the boolean on. Quote the value. [CONFIG_WRONG_TYPE]'],
    ],
    ['list for a string', 'cluster', 'clusterName: [a]', ['f.yaml:3:1 clusterName: expected a string, found a list [CONFIG_WRONG_TYPE]']],
    [
      'object for a string',
      'cluster',
      'clusterName: {a: b}',
      ['f.yaml:3:1 clusterName: expected a string, found an object [CONFIG_WRONG_TYPE]'],
    ],
    [
      'quoted boolean',
      'init',
      "dryRun: 'true'",
      ['f.yaml:3:9 dryRun: expected true or false, found the string "true". Remove the quotes. [CONFIG_WRONG_TYPE]'],
    ],
    ['number for a boolean', 'reset', 'force: 1', ['f.yaml:3:8 force: expected true or false, found the number 1 [CONFIG_WRONG_TYPE]']],
    [
      'quoted number',
      'init',
      'localAPIEndpoint: {bindPort: "6443"}',
      ['f.yaml:3:30 localAPIEndpoint.bindPort: expected an integer, found the string "6443". Remove the quotes. [CONFIG_WRONG_TYPE]'],
    ],
    [
      'fraction',
      'init',
      'localAPIEndpoint: {bindPort: 6443.5}',
      ['f.yaml:3:30 localAPIEndpoint.bindPort: expected an integer, found the number 6443.5 [CONFIG_WRONG_TYPE]'],
    ],
    [
      'beyond 32 bits',
      'init',
      'localAPIEndpoint: {bindPort: 4294967296}',
      ['f.yaml:3:30 localAPIEndpoint.bindPort: "4294967296" does not fit a 32-bit integer [CONFIG_OUT_OF_RANGE]'],
    ],
    [
      'beyond 64 bits',
      'init',
      'localAPIEndpoint: {bindPort: 18446744073709551615}',
      ['f.yaml:3:30 localAPIEndpoint.bindPort: "18446744073709551615" does not fit a 32-bit integer [CONFIG_OUT_OF_RANGE]'],
    ],
    [
      'string for a list',
      'reset',
      'skipPhases: preflight',
      ['f.yaml:3:13 skipPhases: expected a list, found the string "preflight". Put a dash before each item. [CONFIG_WRONG_TYPE]'],
    ],
    [
      'string for an object',
      'init',
      'nodeRegistration: cp-1',
      ['f.yaml:3:19 nodeRegistration: expected an object, found the string "cp-1" [CONFIG_WRONG_TYPE]'],
    ],
    [
      'list for an object',
      'init',
      'nodeRegistration: [a]',
      ['f.yaml:3:1 nodeRegistration: expected an object, found a list [CONFIG_WRONG_TYPE]'],
    ],
    [
      'number in a list of strings',
      'reset',
      'skipPhases: [a, 1]',
      ['f.yaml:3:17 skipPhases[1]: expected a string, found the number 1. Quote the value. [CONFIG_WRONG_TYPE]'],
    ],
    [
      'string in a list of objects',
      'init',
      'nodeRegistration: {taints: [a]}',
      ['f.yaml:3:29 nodeRegistration.taints[0]: expected an object, found the string "a" [CONFIG_WRONG_TYPE]'],
    ],
    [
      'v1beta3 arguments in v1beta4',
      'init',
      'nodeRegistration:\n  kubeletExtraArgs:\n    node-ip: 10.0.0.1',
      [
        'f.yaml:4:3 nodeRegistration.kubeletExtraArgs: expected a list, found an object. Write a list of names and values (v1beta4): - {name: node-ip, value: …}. [CONFIG_WRONG_TYPE]',
      ],
    ],
    [
      'v1beta4 arguments in v1beta3',
      'init3',
      'nodeRegistration:\n  kubeletExtraArgs:\n  - {name: a, value: b}',
      [
        'f.yaml:4:3 nodeRegistration.kubeletExtraArgs: expected an object, found a list. In v1beta3, write arguments as an object: {NAME: VALUE}. [CONFIG_WRONG_TYPE]',
      ],
    ],
    [
      'number as the value of an argument',
      'cluster3',
      'scheduler: {extraArgs: {v: 4}}',
      ['f.yaml:3:28 scheduler.extraArgs.v: expected a string, found the number 4. Quote the value. [CONFIG_WRONG_TYPE]'],
    ],
    [
      'string as a feature gate',
      'cluster',
      'featureGates: {RootlessControlPlane: "true"}',
      [
        'f.yaml:3:38 featureGates.RootlessControlPlane: expected true or false, found the string "true". Remove the quotes. [CONFIG_WRONG_TYPE]',
      ],
    ],
    [
      'number for a duration',
      'init',
      'timeouts: {discovery: 5}',
      [
        'f.yaml:3:23 timeouts.discovery: expected a string, found the number 5. Write a number with a unit, such as 90s, 5m or 1h30m. [CONFIG_WRONG_TYPE]',
      ],
    ],
    [
      'invalid duration',
      'init',
      'timeouts: {discovery: 1d}',
      [
        'f.yaml:3:23 timeouts.discovery: "1d" is not a duration. Write a number with a unit, such as 90s, 5m or 1h30m. [CONFIG_INVALID_DURATION]',
      ],
    ],
    [
      'empty duration',
      'init',
      'timeouts: {discovery: ""}',
      [
        'f.yaml:3:12 timeouts.discovery: "" is not a duration. Write a number with a unit, such as 90s, 5m or 1h30m. [CONFIG_INVALID_DURATION]',
      ],
    ],
    [
      'invalid time',
      'init',
      'bootstrapTokens: [{expires: 2030-01-02}]',
      [
        'f.yaml:3:29 bootstrapTokens[0].expires: "2030-01-02" is not a time in RFC 3339 form. Use a time such as 2030-01-02T03:04:05Z. [CONFIG_INVALID_TIME]',
      ],
    ],
    [
      'invalid quantity',
      'cluster',
      'apiServer: {extraEnvs: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: x}}}]}',
      [
        'f.yaml:3:97 apiServer.extraEnvs[0].valueFrom.resourceFieldRef.divisor: "x" is not a quantity. Write a number with or without suffix, such as 1, 100m or 64Mi. [CONFIG_INVALID_QUANTITY]',
      ],
    ],
    [
      'invalid enum value',
      'init',
      'nodeRegistration: {imagePullPolicy: Sometimes}',
      ['f.yaml:3:37 nodeRegistration.imagePullPolicy: "Sometimes" is not one of Always, IfNotPresent and Never [CONFIG_INVALID_VALUE]'],
    ],
    [
      'enum value in another case',
      'init',
      'nodeRegistration: {imagePullPolicy: always}',
      [
        'f.yaml:3:37 nodeRegistration.imagePullPolicy: "always" is not one of Always, IfNotPresent and Never. Did you mean Always? [CONFIG_INVALID_VALUE]',
      ],
    ],
    [
      'misspelled enum value',
      'cluster',
      'encryptionAlgorithm: RSA2048',
      [
        'f.yaml:3:22 encryptionAlgorithm: "RSA2048" is not one of RSA-2048, RSA-3072, RSA-4096, ECDSA-P256 and ECDSA-P384. Did you mean RSA-2048? [CONFIG_INVALID_VALUE]',
      ],
    ],
    [
      'number as an enum value',
      'init',
      'nodeRegistration: {imagePullPolicy: 1}',
      ['f.yaml:3:37 nodeRegistration.imagePullPolicy: expected a string, found the number 1 [CONFIG_WRONG_TYPE]'],
    ],
    [
      'an unknown unmount flag',
      'reset',
      'unmountFlags: [MNT_FORCE, foo]',
      ['f.yaml:3:27 unmountFlags[1]: "foo" is not one of MNT_FORCE, MNT_DETACH, MNT_EXPIRE and UMOUNT_NOFOLLOW [CONFIG_INVALID_VALUE]'],
    ],
    [
      'an argument without a name',
      'init',
      'nodeRegistration: {kubeletExtraArgs: [{value: a}, {name: "", value: b}]}',
      [
        'f.yaml:3:39 nodeRegistration.kubeletExtraArgs[0].name: required field is missing [CONFIG_MISSING_VALUE]',
        'f.yaml:3:52 nodeRegistration.kubeletExtraArgs[1].name: required field is missing [CONFIG_MISSING_VALUE]',
      ],
    ],
    [
      'a taint without an effect',
      'init',
      'nodeRegistration: {taints: [{key: a}]}',
      [
        'f.yaml:3:29 nodeRegistration.taints[0].effect: required field is missing. Use NoSchedule, PreferNoSchedule or NoExecute. [CONFIG_MISSING_VALUE]',
      ],
    ],
    [
      'a volume without its paths',
      'cluster',
      'apiServer: {extraVolumes: [{name: a}]}',
      [
        'f.yaml:3:28 apiServer.extraVolumes[0].hostPath: required field is missing [CONFIG_MISSING_VALUE]',
        'f.yaml:3:28 apiServer.extraVolumes[0].mountPath: required field is missing [CONFIG_MISSING_VALUE]',
      ],
    ],
    [
      'an empty item',
      'init',
      'skipPhases:\n- addon\n-\n',
      ['f.yaml:5:2 skipPhases[1]: the list item is empty. Remove the item, or add a value after the dash. [CONFIG_NULL_ITEM]'],
    ],
    [
      'an empty item among objects',
      'init',
      'bootstrapTokens: [null]',
      ['f.yaml:3:19 bootstrapTokens[0]: the list item is empty. Remove the item, or add a value after the dash. [CONFIG_NULL_ITEM]'],
    ],
    [
      'an invalid token',
      'init',
      'bootstrapTokens: [{token: abc}]',
      [
        'f.yaml:3:27 bootstrapTokens[0].token: the value is not a bootstrap token. Write six characters, a dot and sixteen characters (a-z and 0-9). To generate a token, run kubeletadm token generate. [CONFIG_INVALID_TOKEN]',
      ],
    ],
    [
      'an invalid certificate key',
      'init',
      'certificateKey: e6a2',
      [
        'f.yaml:3:17 certificateKey: the value is not a certificate key. Write 64 hexadecimal digits (an AES key of 32 bytes). To generate a key, run kubeletadm certs certificate-key. [CONFIG_INVALID_CERTIFICATE_KEY]',
      ],
    ],
  ])('rejects: %s', (...args) => expectLines(args));

  it.each<readonly [string, DocumentName, string]>([
    ['integers with a decimal point', 'init', 'localAPIEndpoint: {bindPort: 6443.0}'],
    ['hexadecimal', 'init', 'localAPIEndpoint: {bindPort: 0x192b}'],
    ['an exponent', 'init', 'localAPIEndpoint: {bindPort: 1e3}'],
    ['words for booleans', 'reset', 'force: yes\ndryRun: off'],
    ['dates for strings', 'cluster', 'clusterName: 2030-01-02'],
    [
      'null for every field',
      'init',
      'bootstrapTokens: null\nnodeRegistration: ~\nskipPhases:\ndryRun: null\ntimeouts: {discovery: null}\npatches: null',
    ],
    ['null as taints', 'init', 'nodeRegistration: {taints: null}'],
    ['empty optional strings', 'init', 'nodeRegistration: {name: "", criSocket: "", imagePullPolicy: ""}\ncertificateKey: ""'],
    ['zero as a port', 'init', 'localAPIEndpoint: {bindPort: 0}'],
    ['null among feature gates', 'cluster', 'featureGates: {RootlessControlPlane: null}'],
    ['null and empty values of arguments', 'cluster3', 'scheduler: {extraArgs: {a: null, b: ""}}'],
    ['an argument without a value', 'cluster', 'scheduler: {extraArgs: [{name: profiling}]}'],
    ['times with zone and fraction', 'init', 'bootstrapTokens: [{expires: "2030-02-28T03:04:05.5+02:00"}]'],
    [
      'quantities as number and string',
      'cluster',
      'apiServer: {extraEnvs: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1}}}, {name: B, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}]}',
    ],
    [
      'every field of an upgrade',
      'upgrade',
      'apply: {kubernetesVersion: v1.36.2, allowExperimentalUpgrades: true, allowRCUpgrades: true, certificateRenewal: false, dryRun: true, etcdUpgrade: false, forceUpgrade: true, ignorePreflightErrors: [Swap], patches: {directory: /p}, printConfig: true, skipPhases: [a], imagePullPolicy: Always, imagePullSerial: true}\ndiff: {kubernetesVersion: v1.36.2, contextLines: 3}\nnode: {certificateRenewal: true, dryRun: true, etcdUpgrade: true, ignorePreflightErrors: [], skipPhases: [], patches: {directory: /p}, imagePullPolicy: Never, imagePullSerial: false}\nplan: {kubernetesVersion: v1.36.2, allowExperimentalUpgrades: false, allowRCUpgrades: false, dryRun: false, etcdUpgrade: true, ignorePreflightErrors: [Mem], printConfig: false}\ntimeouts: {upgradeManifests: 5m}',
    ],
  ])('accepts: %s', (_, document, body) => {
    expect(linesOf(load(documentOf(document, body)))).toEqual([]);
  });
});

describe('a document with errors', () => {
  it('is validated without reporting missing required fields', () => {
    const lines = linesOf(load(documentOf('join', 'discvery: {}\ncaCertPath: relativepath')));
    expect(lines).toEqual([
      'f.yaml:3:1 discvery: unknown field. Did you mean discovery? [CONFIG_UNKNOWN_FIELD]',
      'f.yaml:4:13 caCertPath: "relativepath" is not an absolute path to a .crt file. Use a path that begins with a slash. [CONFIG_INVALID_PATH]',
    ]);
  });

  it('keeps its valid fields', () => {
    const { init } = load(
      documentOf('init', 'nodeRegistration: {name: cp-1, taints: [{key: a}], imagePullSerial: "x"}\nskipPhases: [a, null]'),
    );
    expect(init).toEqual({ nodeRegistration: { name: 'cp-1' }, skipPhases: ['a', ''] });
  });
});

describe('ignored fields', () => {
  const join = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\nmetadata: {name: config}\n';
  const problems = (text: string, ignores: 'metadata' | 'unknown-fields'): readonly string[] =>
    loadConfig(text, 'f.yaml', { kinds: ['JoinConfiguration', 'KubeletConfiguration'], ignores }).problems.map(
      ({ severity = 'error', path = '', code }) => `${severity} ${path} ${code}`,
    );

  it('are warnings, and missing values are still reported', () => {
    expect(problems(join, 'metadata').toSorted()).toEqual([
      'error discovery CONFIG_MISSING_VALUE',
      'warning metadata CONFIG_UNKNOWN_FIELD',
    ]);
    expect(problems(`${join}frob: 1\nspec: {}\n`, 'metadata')).toContain('error frob CONFIG_UNKNOWN_FIELD');
    expect(problems(`${join}frob: 1\n`, 'unknown-fields')).toContain('warning frob CONFIG_UNKNOWN_FIELD');
  });
});
