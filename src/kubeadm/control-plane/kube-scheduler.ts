import type { JsonObject } from '../../base/json.ts';
import { SCHEDULER_CONF } from '../../kube/well-known.ts';
import { argValue } from '../config/model.ts';
import { componentCommand } from './component-command.ts';
import { extraMounts, fileMount, uniqueMounts } from './host-mounts.ts';
import { kubernetesImage } from './images.ts';
import type { ControlPlaneNode } from './model.ts';
import { livenessProbe, type ProbeTarget, probeHost, readinessProbe, startupProbe } from './probes.ts';
import { staticPod } from './static-pod.ts';

const PORT = 10259;

const OWN_ARGUMENTS = {
  'authentication-kubeconfig': SCHEDULER_CONF,
  'authorization-kubeconfig': SCHEDULER_CONF,
  'bind-address': '127.0.0.1',
  kubeconfig: SCHEDULER_CONF,
  'leader-elect': 'true',
};

/**
 * The static Pod of kube-scheduler.
 * @see kubeadm 1.36 phases/controlplane/manifests.go
 */
export function kubeSchedulerPod({ cluster, timeouts, proxyEnvironment }: ControlPlaneNode): JsonObject {
  const { extraArgs, extraVolumes, extraEnvs = [] } = cluster.scheduler;
  const target: ProbeTarget = { host: probeHost(argValue(extraArgs, 'bind-address') ?? '127.0.0.1'), scheme: 'HTTPS' };
  return staticPod({
    name: 'kube-scheduler',
    image: kubernetesImage('kube-scheduler', cluster),
    command: componentCommand('kube-scheduler', OWN_ARGUMENTS, extraArgs),
    mounts: uniqueMounts([fileMount('kubeconfig', SCHEDULER_CONF), ...extraMounts(extraVolumes)]),
    env: [...proxyEnvironment, ...extraEnvs],
    port: PORT,
    probes: {
      livenessProbe: livenessProbe(target, '/livez'),
      readinessProbe: readinessProbe(target, '/readyz'),
      startupProbe: startupProbe(target, '/livez', timeouts.controlPlaneComponentHealthCheck),
    },
    requests: { cpu: '100m' },
  });
}
