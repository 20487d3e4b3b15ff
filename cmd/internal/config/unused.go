package config

import (
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-proxy/config/v1alpha1"
)

// checkWindows refuses settings of Windows, which kube-proxy reads there alone.
// Empty ones are in every file that kubeadm writes.
func checkWindows(o *v1alpha1.KubeProxyConfiguration, fs *findings) {
	if o.WindowsRunAsService {
		fs.refuse("windowsRunAsService", "true: must be false: there is no such service on Linux")
	}
	for field, value := range reflect.ValueOf(o.Winkernel).Fields() {
		if !value.IsZero() {
			fs.refuse(join("winkernel", jsonName(field)), "%v: must be empty or false: it is for Windows", value)
		}
	}
}

// noteOtherModes tells of settings of modes that are not in use, unless they
// are the default anyway. Kube-proxy does not read them either.
func noteOtherModes(o *v1alpha1.KubeProxyConfiguration, fs *findings) {
	for _, section := range []struct {
		name         string
		given, unset any
	}{
		{"ipvs", o.IPVS, v1alpha1.KubeProxyIPVSConfiguration{SyncPeriod: metav1.Duration{Duration: 30 * time.Second}}},
		{"nftables", o.NFTables, v1alpha1.KubeProxyNFTablesConfiguration{
			MasqueradeBit: new(int32(14)),
			SyncPeriod:    metav1.Duration{Duration: 30 * time.Second},
			MinSyncPeriod: metav1.Duration{Duration: time.Second},
		}},
	} {
		unset := reflect.ValueOf(section.unset)
		for field, value := range reflect.ValueOf(section.given).Fields() {
			empty := value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0
			if !empty && !reflect.DeepEqual(value.Interface(), unset.FieldByIndex(field.Index).Interface()) {
				fs.note(join(section.name, jsonName(field)), "is not read in mode %s", o.Mode)
			}
		}
	}
}

// noteWithoutEffect tells of settings that kube-proxy acts upon and for which
// there is nothing to do here: a change is never lost between the client and the
// rules, so that nothing is handed out twice, and no metric is hidden.
func noteWithoutEffect(o *v1alpha1.KubeProxyConfiguration, fs *findings) {
	if period := o.ConfigSyncPeriod.Duration; period > 0 && period != configSyncPeriod {
		fs.note("configSyncPeriod", "has no effect: all changes are followed as they come")
	}
	if o.ShowHiddenMetricsForVersion == hiddenMetrics {
		fs.note("showHiddenMetricsForVersion", "has no effect: no metric is hidden")
	}
}
