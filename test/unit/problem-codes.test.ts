import { describe, expect, it } from 'vitest';
import { readProblemEntries } from '../../src/base/problem-entries.ts';
import { loadProblemPages } from '../../src/problem-pages.ts';
import { repositoryTexts } from '../support/source-files.ts';

/** Names in capitals that are no codes: variables of environments and files, cipher suites, flags of system calls. */
const OTHER_NAMES =
  /^(?:TLS_.*|AES_.*|CHACHA20_.*|RC4_.*|MNT_.*|UMOUNT_NOFOLLOW|EOF_.*|QUOTE_.*|HTTPS?_PROXY|NO_PROXY|KUBELETADM_.*|KUBERNETES_EXEC_INFO|KUBELET_(?:CONFIG|EXTRA|KUBEADM)_ARGS|SSH_AUTH_SOCK|ID_LIKE|PRETTY_NAME|NODE_NAME|NET_BIND_SERVICE|KEY_NAME|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|(?:ERR_TLS_)?CERT_.*|HOST_CONNECTION)$/;

/** Codes of progress, which need no action. */
const PROGRESS = new Set([
  'API_SERVER_ACCEPTS',
  'API_SERVER_THROUGH_HOST',
  'CERTIFICATE_RELOADED',
  'CHANGE_DONE',
  'CLUSTER',
  'CLUSTER_ANSWERS',
  'COMMIT_CONFIRMED',
  'COMMIT_VERIFIED',
  'COMPONENT_HEALTHY',
  'COMPONENT_RESTORED',
  'COMPONENT_RESTARTED',
  'CONTROLLER_READY',
  'COMPONENT_UPGRADED',
  'CSR_APPROVED',
  'KUBELET_UPGRADE_NEXT',
  'UPGRADE_VERIFIED',
  'DYNAMIC_ASSIGNED',
  'DYNAMIC_IMPACT',
  'DYNAMIC_PUSHED',
  'DYNAMIC_REPAIRED',
  'DYNAMIC_STATE',
  'ETCD_NOT_CHECKED',
  'GATE_PASSED',
  'GATE_STARTED',
  'HOOK_ANSWERED',
  'HOST_ASKED',
  'HOST_CHANGED',
  'HOST_DOES',
  'HOST_ENDED',
  'HOST_FACTS',
  'HOST_UNCHANGED',
  'KUBECONFIG_WRITTEN',
  'KUBELET_RESTARTED',
  'LEADER',
  'LEFT_BEHIND',
  'NODE_CORDONED',
  'NODE_DRAINED',
  'NODE_UNCORDONED',
  'PHASE_DEFERRED',
  'PHASE_NOOP',
  'PHASE_STARTED',
  'POD_EVICTED',
  'POD_NOT_EVICTED',
  'POD_TERMINATING',
  'PODS_SETTLED',
  'PROGRESS',
  'REVERT_ARMED',
  'ROLLOUT_BATCH',
  'ROLLOUT_CHANGED',
  'ROLLOUT_ENDED',
  'ROLLOUT_GATES',
  'ROLLOUT_NODE',
  'ROLLOUT_NODES',
  'RUN_ENDED',
  'SERVER_STARTED',
  'TOKEN_USED',
  'UNDO_CHANGE',
  'WAITING',
]);

const SOURCES = [...repositoryTexts()].filter(([path]) => path.startsWith('src/') && path.endsWith('.ts'));
const CHECK_NAMES = 'src/kubeadm/config/check-names.ts';

function codesOf(text: string): readonly string[] {
  const names = [...text.matchAll(/'([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)'|\bcode: '([A-Z]+)'|\[([A-Z]+(?:_[A-Z]+)+)\]\\n/g)];
  return names.map(([, name, word, printed]) => (name ?? word ?? printed) as string);
}

/** The preflight checks that can be reported; their names are their codes. */
function checksOf(): readonly string[] {
  const list = SOURCES.find(([path]) => path === CHECK_NAMES)?.[1] ?? '';
  const others = SOURCES.filter(([path]) => path !== CHECK_NAMES)
    .map(([, text]) => text)
    .join('\n');
  const names = [...list.matchAll(/^ {2}'([A-Za-z]+)',$/gm)].map(([, name]) => name as string);
  const prefixes = [...(/NAME_PREFIXES = \[(.*)\]/.exec(list)?.[1] ?? '').matchAll(/'(\w+)'/g)].map(([, name]) => name as string);
  return [...names.filter((name) => others.includes(`'${name}'`)), ...prefixes];
}

const ENTRIES = readProblemEntries(await loadProblemPages());

/** The codes with an entry: a heading, or the first cell of a row. */
function documented(): readonly string[] {
  return ENTRIES.flatMap(({ codes }) => codes);
}

describe('the codes of problems', () => {
  const codes = new Set([
    ...SOURCES.flatMap(([, text]) => codesOf(text)).filter((code) => !OTHER_NAMES.test(code) && !PROGRESS.has(code)),
    ...checksOf(),
  ]);

  it('are found in the sources', () => {
    expect(codes.size).toBeGreaterThan(350);
    expect([...codes]).toEqual(expect.arrayContaining(['USAGE', 'HOST_LOCKED', 'DISCOVERY_TLS', 'OUTPUT_UNWRITABLE', 'Swap', 'Port']));
  });

  it('each have an entry in docs/troubleshooting.md or a page of docs/problems-*.md', () => {
    const known = new Set(documented());
    expect([...codes].filter((code) => !known.has(code)).toSorted()).toEqual([]);
  });

  it('have one entry each, and no entry is left from a removed code', () => {
    const entries = documented();
    expect(entries.filter((code, i) => entries.indexOf(code) !== i)).toEqual([]);
    expect(entries.filter((code) => !codes.has(code))).toEqual([]);
  });

  it('have a cause and a fix, which `explain` prints', () => {
    const incomplete = ENTRIES.filter(({ cause, fix, commands }) => cause === '' || (fix === '' && commands.length === 0));
    expect(incomplete.map(({ codes }) => codes)).toEqual([]);
  });
});
