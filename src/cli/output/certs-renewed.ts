import { joinLines } from '../../base/text/styled.ts';
import type { HostPlan } from '../../host/plan/document.ts';
import type { WorkflowResult } from '../../host/run-workflow.ts';
import { RESTART_NEEDED } from '../../kubeadm/workflows/certificates/renew-certs.ts';

/**
 * The end of `certs renew`, a line for each host with renewed certificates: their number, the earliest end of their validity, and the
 * restart of their components.
 * @param isLocal the only host is the local one, whose name is not shown
 * @returns `node3: 11 certificates renewed, valid until 2027-11-30; 4 static Pods restarted`, and a newline; empty: no certificate was renewed
 */
export function renewedLines(results: readonly Pick<WorkflowResult, 'host' | 'warnings'>[], isLocal: boolean): string {
  return joinLines(
    results.flatMap(({ host, warnings }) => {
      const text = renewedText(host);
      if (text === null) return [];
      const advice = warnings.find(({ code }) => code === RESTART_NEEDED)?.message;
      return [`${isLocal ? '' : `${host.name}: `}${text}${advice === undefined ? '' : `; ${advice}`}`];
    }),
  );
}

function renewedText({ phases }: HostPlan): string | null {
  const changes = phases.flatMap(({ plan }) => plan.changes);
  const ends = changes.flatMap((change) => {
    const certificate = change.kind === 'write-file' ? change.summary?.certificate : undefined;
    return certificate === undefined ? [] : [certificate.notAfter];
  });
  const [first] = ends.toSorted();
  if (first === undefined) return null;
  const restarted = changes.filter(({ kind }) => kind === 'restart-static-pod').length;
  const renewed = `${counted(ends.length, 'certificate')} renewed, valid until ${first.slice(0, 10)}`;
  return restarted === 0 ? renewed : `${renewed}; ${counted(restarted, 'static Pod')} restarted`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
