import { AppError } from '../core/errors.ts';
import { combineFacts } from '../core/facts/fact.ts';
import { fileFacts } from '../core/facts/file-facts.ts';
import { initSystem } from '../core/facts/init-system.ts';
import { clientIdentity, KUBELET_CONF } from '../core/facts/kubelet-identity.ts';
import { observe } from '../engine/observe.ts';
import { definePhase, type PhaseContext } from '../engine/phase.ts';

export interface WaitBootstrapInput {
  /** `timeouts.tlsBootstrap`. */
  readonly timeoutMs: number;
}

const NAME = 'kubelet-wait-bootstrap';
const BOOTSTRAP_CONF = '/etc/kubernetes/bootstrap-kubelet.conf';
const POLL_MS = 1_000;

const FACTS = combineFacts({ files: fileFacts([BOOTSTRAP_CONF]), init: initSystem, identity: clientIdentity });

/**
 * Waits until the kubelet has a client certificate it can use, then takes the bootstrap credentials off the host, also when it never came.
 * kubeadm 1.36: join phase kubelet-wait-bootstrap. kubelet.conf alone proves nothing: the kubelet writes it before it has a certificate.
 */
export const kubeletWaitBootstrap = definePhase<WaitBootstrapInput, Awaited<ReturnType<typeof look>>>({
  name: NAME,
  short: 'Wait for the kubelet to bootstrap itself',
  tidiesUp: true,
  ready: waitForIdentity,
  observe: look,
  plan: ({ files, init, identity }) => {
    if (init !== 'systemd') return { changes: [], deferred: 'the kubelet bootstraps itself when the host boots with these files' };
    const found = files.get(BOOTSTRAP_CONF) ?? null;
    if (found === null) {
      return identity.state === 'usable'
        ? { changes: [], noop: `the kubelet has a client certificate (${identity.source})` }
        : {
            changes: [],
            deferred: 'the kubelet has no client certificate yet: waits for it after kubelet-start, then removes bootstrap-kubelet.conf',
          };
    }
    const before = { content: found.content ?? '', mode: found.mode, owner: found.owner };
    const because = identity.state === 'usable' ? 'the kubelet has its own client certificate' : 'a token must not stay on the host';
    return { changes: [{ kind: 'remove-file', path: BOOTSTRAP_CONF, before, because }] };
  },
});

function look({ host, signal }: PhaseContext) {
  return observe(host, FACTS, signal);
}

async function waitForIdentity(context: PhaseContext, { timeoutMs }: WaitBootstrapInput): Promise<void> {
  const { clock, host, reporter, signal } = context;
  const started = clock.now().getTime();
  for (let nextProgressMs = 10_000; ; ) {
    const { files, init, identity } = await look(context);
    if (identity.state === 'usable' || init !== 'systemd') return;
    const waitedMs = clock.now().getTime() - started;
    const why = identity.state === 'missing' ? `there is no ${KUBELET_CONF}` : identity.why;
    if (waitedMs >= timeoutMs || !files.get(BOOTSTRAP_CONF)) {
      const mend = 'See its certificate signing request (kubectl get csr) and journalctl -u kubelet, then run the same command again';
      const message = `${NAME}: the kubelet has no client certificate after ${Math.round(waitedMs / 1000)}s: ${why}`;
      throw new AppError({ host: host.name, code: 'BOOTSTRAP_TIMEOUT', message, mend });
    }
    if (waitedMs >= nextProgressMs) {
      nextProgressMs += 10_000;
      reporter.report({
        level: 'info',
        code: 'WAITING',
        host: host.name,
        phase: NAME,
        message: `waiting for the kubelet's client certificate, ${Math.round(waitedMs / 1000)} s: ${why}`,
      });
    }
    await clock.sleep(POLL_MS, signal);
  }
}
